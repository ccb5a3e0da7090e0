#include <tuza/netpoll/socket/peer_closed.h>

#include <poll.h>
#include <tuza/sched/arch/calls.h>

namespace tuza::net {

bool peer_has_closed(int fd) {
  struct pollfd now{.fd = fd, .events = POLLRDHUP, .revents = 0};
  struct timespec at_once{};
  return sys::poll(&now, 1, &at_once) != 0;
}

}  // namespace tuza::net
