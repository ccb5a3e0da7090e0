// macOS has no clocks of other threads: Mach is asked about the thread. It counts in microseconds.
#include <tuza/sched/rt/base/thread_cpu.h>

#include <mach/mach.h>
#include <pthread.h>
#include <time.h>

namespace tuza::rt {

CpuClock own_cpu_clock() { return pthread_mach_thread_np(pthread_self()); }

std::int64_t thread_cpu_ns(CpuClock clock) {
  if (clock == kReadersCpuClock)
    return static_cast<std::int64_t>(clock_gettime_nsec_np(CLOCK_THREAD_CPUTIME_ID));
  thread_basic_info info{};
  mach_msg_type_number_t words = THREAD_BASIC_INFO_COUNT;
  const auto thread = static_cast<thread_act_t>(clock);
  if (thread_info(thread, THREAD_BASIC_INFO, reinterpret_cast<thread_info_t>(&info), &words) != KERN_SUCCESS)
    return 0;
  const auto ns = [](time_value_t time) {
    return time.seconds * 1'000'000'000LL + time.microseconds * 1'000LL;
  };
  return ns(info.user_time) + ns(info.system_time);
}

}  // namespace tuza::rt
