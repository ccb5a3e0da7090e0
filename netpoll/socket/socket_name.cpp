#include <tuza/netpoll/socket/socket_name.h>

#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace tuza::net {

std::optional<SocketName> SocketName::of_path(std::string_view path) {
  struct sockaddr_un un{};
  // The kernel does not need a terminating zero, but other programs do.
  if (path.empty() || path.size() >= sizeof un.sun_path || path.find('\0') != std::string_view::npos) {
    return std::nullopt;
  }
  un.sun_family = AF_UNIX;
  std::memcpy(un.sun_path, path.data(), path.size());
  const bool abstract = path.front() == '@';
  if (abstract) un.sun_path[0] = '\0';
  SocketName name;
  std::memcpy(&name.storage, &un, sizeof un);
  name.length =
      static_cast<socklen_t>(offsetof(struct sockaddr_un, sun_path) + path.size() + (abstract ? 0 : 1));
  return name;
}

SocketName SocketName::of(const Endpoint& endpoint) {
  SocketName name;
  name.length = to_sockaddr(endpoint, name.storage);
  return name;
}

std::optional<Endpoint> SocketName::endpoint() const {
  const std::optional<Endpoint> endpoint = from_sockaddr(address(), length);
  return endpoint ? std::optional(unmapped(*endpoint)) : std::nullopt;
}

std::string SocketName::text() const {
  if (const std::optional<Endpoint> tcp = endpoint()) return to_string(*tcp);
  if (storage.ss_family != AF_UNIX) return "family " + std::to_string(storage.ss_family);
  constexpr std::size_t kBefore = offsetof(struct sockaddr_un, sun_path);
  struct sockaddr_un un{};
  std::memcpy(&un, &storage, sizeof un);
  std::string path(un.sun_path, std::min(length > kBefore ? length - kBefore : 0, sizeof un.sun_path));
  if (!path.empty() && path.front() == '\0') return "unix:@" + path.substr(1);
  return "unix:" + path.substr(0, path.find('\0'));
}

}  // namespace tuza::net
