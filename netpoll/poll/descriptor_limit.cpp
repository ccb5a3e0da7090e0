#include <tuza/netpoll/poll/descriptor_limit.h>

#include <sys/resource.h>
#include <tuza/sched/arch/calls.h>

#include <algorithm>

namespace tuza::net {

std::size_t descriptors_allowed() {
  struct rlimit limit{};
  limit.rlim_cur = kDescriptorsUsual;
  sys::getrlimit(RLIMIT_NOFILE, &limit);
  return std::min<rlim_t>(limit.rlim_cur, 1 << 24);
}

}  // namespace tuza::net
