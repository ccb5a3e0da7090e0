#include <tuza/netpoll/socket/peer_closed.h>

#include <poll.h>
#include <sys/socket.h>
#include <tuza/sched/arch/calls.h>

#include <cerrno>

namespace tuza::net {

bool peer_has_closed(int fd) {
  struct pollfd now{.fd = fd, .events = 0, .revents = 0};
  struct timespec at_once{};
  if (sys::poll(&now, 1, &at_once) > 0) return true;  // POLLHUP or POLLERR
  char byte = 0;
  const long n = sys::recvfrom(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT, nullptr, nullptr);
  return n == 0 || (n < 0 && n != -EAGAIN && n != -EINTR);
}

}  // namespace tuza::net
