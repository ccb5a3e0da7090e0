#include <tuza/sched/rt/base/thread_cpu.h>

#include <sys/syscall.h>
#include <time.h>
#include <tuza/sched/arch/syscall.h>

namespace tuza::rt {

std::int64_t thread_cpu_ns(std::int32_t thread_id) {
  // The clock id that pthread_getcpuclockid() computes: CPUCLOCK_SCHED of one thread.
  const auto clock = static_cast<clockid_t>((~static_cast<std::uint32_t>(thread_id) << 3) | 6);
  struct timespec used{};
  if (sys::invoke(SYS_clock_gettime, clock, &used) != 0) return 0;
  return std::int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

}  // namespace tuza::rt
