#include <tuza/netpoll/poll/sendfile.h>

#include <sys/socket.h>
#include <sys/syscall.h>
#include <tuza/sched/arch/syscall.h>

namespace tuza::net {

const int kMoreFollows = MSG_MORE;

long send_from_file(int socket, int file, std::uint64_t offset, std::uint64_t bytes) {
  auto from = static_cast<std::int64_t>(offset);
  return sys::invoke(SYS_sendfile, socket, file, &from, bytes);
}

}  // namespace tuza::net
