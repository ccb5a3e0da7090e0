#include <tuza/sched/rt/idle/join_thread.h>

#include <tuza/sched/rt/base/clock.h>

#include <ctime>

namespace tuza::rt {

bool try_join(pthread_t thread) { return pthread_tryjoin_np(thread, nullptr) == 0; }

// Waits in small steps, because the timeout of the call refers to the realtime clock, which may be set. (pthread_clockjoin_np() is unknown to the
// ThreadSanitizer of GCC 12.)
bool join_until(pthread_t thread, std::int64_t deadline_ns) {
  constexpr std::int64_t kSecond = 1'000'000'000, kStepNs = 10'000'000;
  while (now_ns() < deadline_ns) {
    struct timespec step{};
    clock_gettime(CLOCK_REALTIME, &step);
    step.tv_nsec += kStepNs;
    step.tv_sec += step.tv_nsec / kSecond;
    step.tv_nsec %= kSecond;
    if (pthread_timedjoin_np(thread, nullptr, &step) == 0) return true;
  }
  return try_join(thread);
}

}  // namespace tuza::rt
