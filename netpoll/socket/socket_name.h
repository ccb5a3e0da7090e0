// The address of a socket, as returned by getsockname(2) and getpeername(2), for TCP and Unix-domain sockets.
//
// Thread-unsafe: a value.
#pragma once

#include <sys/socket.h>
#include <tuza/netpoll/endpoint.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace tuza::net {

struct SocketName {
  struct sockaddr_storage storage{};
  socklen_t length = sizeof storage;

  // `call` is sys::getsockname or sys::getpeername. Returns 0 or -errno.
  template <class Call>
  long ask(Call call, long fd) {
    length = sizeof storage;
    const long error = call(fd, &storage, &length);
    length = std::min<socklen_t>(length, sizeof storage);
    return error;
  }
  // The name of a Unix-domain socket at `path`. A path that begins with '@' has no file; its name begins with
  // a zero byte in the kernel. nullopt if the path is empty, contains a zero byte, or is too long.
  static std::optional<SocketName> of_path(std::string_view path);
  static SocketName of(const Endpoint& endpoint);

  [[nodiscard]] const struct sockaddr* address() const {
    return reinterpret_cast<const struct sockaddr*>(&storage);
  }
  // nullopt if the name is not a TCP address. What a socket of IPv6 calls ::ffff:10.1.2.3 is 10.1.2.3.
  [[nodiscard]] std::optional<Endpoint> endpoint() const;
  // "127.0.0.1:80", "[::1]:80", "unix:/path", "unix:@name", "unix:" (without a name).
  [[nodiscard]] std::string text() const;
};

// ::ffff:10.1.2.3 as the address of IPv4 that it is.
[[nodiscard]] inline Endpoint unmapped(const Endpoint& endpoint) {
  return {endpoint.address().unmapped(), endpoint.port()};
}

}  // namespace tuza::net
