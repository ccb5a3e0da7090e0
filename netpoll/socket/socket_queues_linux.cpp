#include <tuza/netpoll/socket/socket_queues.h>

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <tuza/sched/arch/syscall.h>

namespace tuza::net::socket_queues {
namespace {

Bytes bytes_of(int fd, unsigned long queue) {
  int bytes = 0;
  return sys::invoke(SYS_ioctl, fd, queue, &bytes) == 0 ? Bytes(static_cast<std::size_t>(bytes))
                                                        : std::nullopt;
}

}  // namespace

Bytes unacknowledged(int fd) { return bytes_of(fd, SIOCOUTQ); }

// Unix-domain sockets have no such queue: what is written has arrived.
Bytes unsent(int fd) { return bytes_of(fd, SIOCOUTQNSD).value_or(0); }

Bytes unread(int fd) { return bytes_of(fd, SIOCINQ); }

// TCP copies nothing then.
long discard(int fd, std::size_t most) {
  return sys::invoke(SYS_recvfrom, fd, nullptr, most, MSG_TRUNC | MSG_DONTWAIT, nullptr, nullptr);
}

}  // namespace tuza::net::socket_queues
