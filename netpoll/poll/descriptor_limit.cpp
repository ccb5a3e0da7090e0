#include <tuza/netpoll/poll/descriptor_limit.h>

#include <sys/resource.h>
#include <tuza/sched/arch/calls.h>

#include <algorithm>
#include <system_error>

namespace tuza::net {

std::size_t descriptors_allowed() {
  struct rlimit limit{};
  limit.rlim_cur = kDescriptorsUsual;
  sys::getrlimit(RLIMIT_NOFILE, &limit);
  return std::min<rlim_t>(limit.rlim_cur, 1 << 24);
}

bool is_out_of_resources(const Error& error) {
  return error.is(std::errc::too_many_files_open) || error.is(std::errc::too_many_files_open_in_system) ||
         error.is(std::errc::no_buffer_space) || error.is(std::errc::not_enough_memory) ||
         error.is(std::errc::no_space_on_device);  // epoll_ctl: fs.epoll.max_user_watches
}

}  // namespace tuza::net
