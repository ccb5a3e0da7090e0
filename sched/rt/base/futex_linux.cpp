#include <tuza/sched/rt/base/futex.h>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <tuza/sched/arch/syscall.h>

namespace tuza::rt {

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns) {
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

void futex_wake(std::atomic<std::uint32_t>& word, int count) {
  sys::invoke(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count);
}

}  // namespace tuza::rt
