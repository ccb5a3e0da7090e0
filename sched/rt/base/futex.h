// The two futex operations everything else waits with. Process-private.
//
// Thread safety: thread-safe. wait blocks the M, so only runtime threads that hold no P call it.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <tuza/sched/arch/syscall.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {

// Sleeps while `word` holds `expected`, until woken or for `timeout_ns` (negative: for ever). May return
// early for no reason: callers loop on their condition.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                       std::int64_t timeout_ns = -1) {
#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer keeps a signal back until the thread's next call that it knows. One that comes during a
  // wait which the kernel repeats (SA_RESTART) would be kept for ever.
  constexpr std::int64_t kSignalCheckIntervalNs = 1'000'000'000;
  if (timeout_ns < 0 || timeout_ns > kSignalCheckIntervalNs) timeout_ns = kSignalCheckIntervalNs;
#endif
  struct timespec ts{};
  if (timeout_ns >= 0) {
    ts.tv_sec = timeout_ns / 1'000'000'000;
    ts.tv_nsec = timeout_ns % 1'000'000'000;
  }
  sys::invoke(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, timeout_ns < 0 ? nullptr : &ts);
}

inline void futex_wake(std::atomic<std::uint32_t>& word, int count) {
  sys::invoke(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count);
}

}  // namespace tuza::rt
