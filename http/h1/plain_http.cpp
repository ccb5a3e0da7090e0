#include <tuza/http/h1/plain_http.h>

#include <sys/socket.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/sched/arch/calls.h>

#include <array>
#include <cstddef>
#include <string>

namespace tuza::http {

void answer_plain_http(net::Conn& conn, bool to_head, std::chrono::milliseconds patience) {
  const std::string text = std::string(kPlainHttp.text) + "\n";
  const std::string answer =
      "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: " +
      std::to_string(text.size()) + "\r\nConnection: close\r\n\r\n" + (to_head ? "" : text);
  net::Descriptor& descriptor = net::detail::ConnParts::descriptor(conn);
  // Nothing has been sent on this connection, so there is room for all of it.
  const Result<long> sent = descriptor.control("write", [&](int fd) {
    return sys::sendto(fd, answer.data(), answer.size(), MSG_NOSIGNAL | MSG_DONTWAIT, nullptr, 0);
  });
  if (!sent) return;
  if (!descriptor.control("shutdown", [](int fd) { return sys::shutdown(fd, SHUT_WR); })) return;
  conn.set_read_deadline(net::time_after_now(patience));
  std::array<std::byte, 4096> scrap;
  for (;;) {
    const Result<std::size_t> n = descriptor.read(std::span(scrap));
    if (!n || *n == 0) return;
  }
}

}  // namespace tuza::http
