#include <tuza/netpoll/poll/either.h>

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <tuza/sched/arch/calls.h>

namespace tuza::net {

// An epoll descriptor is readable when any of its events has happened.
long descriptor_for_either(int fd) {
  const long set = sys::invoke(SYS_epoll_create1, EPOLL_CLOEXEC);
  if (set < 0) return set;
  struct epoll_event either{.events = EPOLLIN | EPOLLOUT, .data = {}};
  const long error = sys::invoke(SYS_epoll_ctl, set, EPOLL_CTL_ADD, fd, &either);
  if (error < 0) sys::close(set);
  return error < 0 ? error : set;
}

}  // namespace tuza::net
