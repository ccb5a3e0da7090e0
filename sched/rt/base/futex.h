// The two futex operations that all other waiting is built on. Process-private.
//
// Thread-safe. futex_wait blocks the thread, and the P if the thread has one. So a thread with a P calls it for
// brief waits only, such as a contended RawMutex or SpinLock.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <tuza/sched/arch/syscall.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {

// Sleeps while `word` is `expected`, until a wake-up or for `timeout_ns` (negative: no limit). Spurious returns
// are possible: callers check their condition in a loop.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected,
                       std::int64_t timeout_ns = -1) {
#if defined(TUZA_TSAN)
  // ThreadSanitizer defers a signal until the thread's next intercepted call. A signal during a wait that the
  // kernel restarts (SA_RESTART) would be deferred for ever.
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
