// Where a socket is: what getsockname(2) and getpeername(2) say, for TCP and Unix-domain sockets.
//
// Thread-unsafe: a value.
#pragma once

#include <sys/socket.h>
#include <tuza/netpoll/endpoint.h>

#include <optional>
#include <string>
#include <string_view>

namespace tuza::net {

struct SocketName {
  struct sockaddr_storage storage{};
  socklen_t length = sizeof storage;

  // `call` is SYS_getsockname or SYS_getpeername. 0, or -errno.
  long ask(long call, long fd);
  // That of a Unix-domain socket at `path`; one that begins with '@' has no file, and begins with a zero in
  // the kernel. Nothing if it is empty, has a zero in it, or is too long.
  static std::optional<SocketName> of_path(std::string_view path);

  [[nodiscard]] const struct sockaddr* address() const {
    return reinterpret_cast<const struct sockaddr*>(&storage);
  }
  // Nothing if it is not one of TCP.
  [[nodiscard]] std::optional<Endpoint> endpoint() const;
  // "127.0.0.1:80", "[::1]:80", "unix:/path", "unix:@name", "unix:" (without a name).
  [[nodiscard]] std::string text() const;
};

}  // namespace tuza::net
