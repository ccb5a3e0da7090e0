#include <tuza/sched/rt/base/thread_cpu.h>

#include <pthread.h>

namespace tuza::rt {

clockid_t own_cpu_clock() {
  clockid_t clock = CLOCK_THREAD_CPUTIME_ID;
  return pthread_getcpuclockid(pthread_self(), &clock) == 0 ? clock : CLOCK_THREAD_CPUTIME_ID;
}

std::int64_t thread_cpu_ns(clockid_t clock) {
  struct timespec used{};
  if (clock_gettime(clock, &used) != 0) return 0;
  return std::int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

}  // namespace tuza::rt
