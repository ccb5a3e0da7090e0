#include <tuza/sched/rt/idle/cpu_limit.h>

#include <tuza/sched/rt/idle/idle_mask.h>
#include <unistd.h>

#include <algorithm>

namespace tuza::rt {

// Quotas and affinity masks are each system's own.
void CpuLimit::find(const std::string&) {}

std::int64_t CpuLimit::quota_milli() { return 0; }

std::int32_t CpuLimit::cpus() {
  if (const long online = sysconf(_SC_NPROCESSORS_ONLN); online > 0) {
    allowed_ = static_cast<std::int32_t>(std::min<long>(online, kMaxProcsLimit));
  }
  return allowed_;
}

}  // namespace tuza::rt
