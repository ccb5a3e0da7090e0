// POSIX has a clock for the CPU time of each thread.
#include <tuza/sched/rt/base/thread_cpu.h>

#include <pthread.h>
#include <time.h>

namespace tuza::rt {

CpuClock own_cpu_clock() {
  clockid_t clock{};
  return pthread_getcpuclockid(pthread_self(), &clock) == 0 ? clock : kReadersCpuClock;
}

std::int64_t thread_cpu_ns(CpuClock clock) {
  struct timespec used{};
  const auto id = clock == kReadersCpuClock ? CLOCK_THREAD_CPUTIME_ID : static_cast<clockid_t>(clock);
  if (clock_gettime(id, &used) != 0) return 0;
  return std::int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

}  // namespace tuza::rt
