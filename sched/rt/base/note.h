// A one-shot event that puts an M to sleep.
//
// One thread sleeps, any thread wakes it. A wake-up before the sleep is not lost. The waker's writes before
// wake() are visible after sleep() has returned true. Blocks the M.
#pragma once

#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/base/futex.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {

class Note {
 public:
  // Waits for a wake() and consumes it. Returns false after `timeout_ns`; negative: no timeout.
  bool sleep(std::int64_t timeout_ns = -1) {
    const std::int64_t begin = timeout_ns < 0 ? 0 : now_ns();
    while (state_.exchange(0, std::memory_order_acquire) == 0) {
      std::int64_t left = -1;
      if (timeout_ns >= 0 && (left = timeout_ns - (now_ns() - begin)) <= 0) return false;
      futex_wait(state_, 0, left);
    }
    return true;
  }

  void wake() {
    if (state_.exchange(1, std::memory_order_release) == 0) futex_wake(state_, 1);
  }

 private:
  std::atomic<std::uint32_t> state_{0};  // 1: a wake-up has not been consumed
};

}  // namespace tuza::rt
