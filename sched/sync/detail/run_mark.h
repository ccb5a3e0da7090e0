// Which runtime something belongs to, for what may outlive it: its goroutines are gone then.
//
// Thread-safe. Does not park.
#pragma once

#include <atomic>
#include <cstdint>

namespace tuza::rt {

// The number of the runtime that is on, from 1; 0 outside tuza::run.
std::uint64_t current_run();

class RunMark {
 public:
  // It belongs to the runtime that is on, or to none.
  void set() { number_.store(current_run(), std::memory_order_relaxed); }
  // It belongs to the runtime that is on.
  [[nodiscard]] bool is_on() const {
    const std::uint64_t number = number_.load(std::memory_order_relaxed);
    return number != 0 && number == current_run();
  }
  // It belongs to one that has ended.
  [[nodiscard]] bool ended() const {
    const std::uint64_t number = number_.load(std::memory_order_relaxed);
    return number != 0 && number != current_run();
  }

 private:
  std::atomic<std::uint64_t> number_{0};
};

}  // namespace tuza::rt
