// In a file of its own: the kernel's header and libc's <netinet/tcp.h> define the same names, and the
// kernel's header has the newer fields.
#include <tuza/http/tests/tcp_info.h>

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace tuza::http::testing {

std::uint32_t data_segments_received(int fd) {
  struct tcp_info info{};
  socklen_t length = sizeof info;
  return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 ? info.tcpi_data_segs_in : 0;
}

}  // namespace tuza::http::testing
