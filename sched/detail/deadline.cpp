#include <tuza/sched/detail/deadline.h>

#include <tuza/sched/detail/clock_source.h>

namespace tuza::rt {

std::int64_t deadline_after(std::chrono::nanoseconds duration) {
  return time_after(clock_now_ns(), duration);
}

}  // namespace tuza::rt
