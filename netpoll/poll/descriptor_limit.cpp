#include <tuza/netpoll/poll/descriptor_limit.h>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <tuza/sched/arch/syscall.h>

#include <algorithm>

namespace tuza::net {

std::size_t descriptors_allowed() {
  struct rlimit limit{};
  limit.rlim_cur = kDescriptorsUsual;
  sys::invoke(SYS_prlimit64, 0, RLIMIT_NOFILE, nullptr, &limit);
  return std::min<rlim_t>(limit.rlim_cur, 1 << 24);
}

}  // namespace tuza::net
