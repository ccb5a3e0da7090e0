// Records the runtime that an object belongs to, for objects that may outlive it: its goroutines are gone
// then.
//
// Thread-safe. Does not park.
#pragma once

#include <atomic>
#include <cstdint>

namespace tuza::rt {

// The number of the current runtime, from 1; 0 outside tuza::run.
std::uint64_t current_run();

class RunMark {
 public:
  // Marks the object as belonging to the current runtime, or to none outside tuza::run.
  void set() { number_.store(current_run(), std::memory_order_relaxed); }
  // Whether the object belongs to the current runtime.
  [[nodiscard]] bool is_on() const {
    const std::uint64_t number = number_.load(std::memory_order_relaxed);
    return number != 0 && number == current_run();
  }
  // Whether the object belongs to a runtime that has ended.
  [[nodiscard]] bool ended() const {
    const std::uint64_t number = number_.load(std::memory_order_relaxed);
    return number != 0 && number != current_run();
  }

 private:
  std::atomic<std::uint64_t> number_{0};
};

}  // namespace tuza::rt
