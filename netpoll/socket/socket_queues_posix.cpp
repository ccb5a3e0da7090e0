#include <tuza/netpoll/socket/socket_queues.h>

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <tuza/sched/arch/calls.h>

#include <algorithm>
#include <array>

namespace tuza::net::socket_queues {

// FreeBSD and macOS tell, each by a call of its own.
Bytes unacknowledged([[maybe_unused]] int fd) {
  [[maybe_unused]] int bytes = 0;
#if defined(FIONWRITE)
  if (::ioctl(fd, FIONWRITE, &bytes) == 0) return static_cast<std::size_t>(bytes);
#elif defined(SO_NWRITE)
  socklen_t size = sizeof bytes;
  if (::getsockopt(fd, SOL_SOCKET, SO_NWRITE, &bytes, &size) == 0) return static_cast<std::size_t>(bytes);
#endif
  return std::nullopt;
}

Bytes unsent(int) { return std::nullopt; }

Bytes unread(int fd) {
  int bytes = 0;
  return ::ioctl(fd, FIONREAD, &bytes) == 0 ? Bytes(static_cast<std::size_t>(bytes)) : std::nullopt;
}

long discard(int fd, std::size_t most) {
  std::array<char, 4096> scrap;
  long discarded = 0;
  while (most > 0) {
    const long n =
        sys::recvfrom(fd, scrap.data(), std::min(most, scrap.size()), MSG_DONTWAIT, nullptr, nullptr);
    if (n <= 0) return discarded > 0 ? discarded : n;
    discarded += n;
    most -= static_cast<std::size_t>(n);
  }
  return discarded;
}

}  // namespace tuza::net::socket_queues
