// A descriptor number that is closed at the end of the scope. Internal: not installed.
#pragma once

#include <tuza/sched/arch/calls.h>

#include <utility>

namespace tuza::detail {

class OwnFd {
 public:
  OwnFd() = default;
  explicit OwnFd(int number) : number_(number) {}
  OwnFd(OwnFd&& other) noexcept : number_(other.release()) {}
  OwnFd& operator=(OwnFd&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~OwnFd() {
    if (number_ >= 0) sys::close(number_);
  }

  [[nodiscard]] int get() const { return number_; }  // -1: none
  int release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

}  // namespace tuza::detail
