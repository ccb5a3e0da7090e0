// Public header, part of <tuza/net.h>.
//
// An address of IPv4 or IPv6 with a port.
//
//     tuza::net::Endpoint here = tuza::net::parse_endpoint("[::1]:8080").value();
//     std::string text = tuza::net::to_string(here);                                 // "[::1]:8080"
//
// For Asio's calls: framework/asio_endpoint.h.
//
// Thread-safe.
#pragma once

#include <sys/socket.h>
#include <tuza/netpoll/ip_address.h>
#include <tuza/sched/result.h>

#include <compare>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tuza {
class Context;
}

namespace tuza::net {

class Endpoint {
 public:
  // 0.0.0.0:0
  constexpr Endpoint() = default;
  constexpr Endpoint(const IpAddress& address, std::uint16_t port) : address_(address), port_(port) {}

  [[nodiscard]] constexpr const IpAddress& address() const { return address_; }
  [[nodiscard]] constexpr std::uint16_t port() const { return port_; }

  friend constexpr bool operator==(const Endpoint&, const Endpoint&) = default;
  friend constexpr std::strong_ordering operator<=>(const Endpoint&, const Endpoint&) = default;

 private:
  IpAddress address_;
  std::uint16_t port_ = 0;
};

// "127.0.0.1:80", "[::1]:80", ":80" (every address of this machine, IPv4 and IPv6). The host must be an
// address; use resolve() for names. Errc::kBadAddress if the text is not a valid address.
[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view host_port);

// Like parse_endpoint(), but also accepts names, such as "db.example.org:5432": asks the system's resolver and
// returns its preferred address. Addresses need no query. Neither does "localhost", nor a name below it: 127.0.0.1, always
// (RFC 6761). Errc::kNoSuchHost if the name does not exist; Errc::kResolverFailed if that is not known, because the name
// servers do not answer: it may succeed later.
//
// The query is a blocking call (sched/blocking.h), and parks. At most 128 run at once; others wait until one is over.
[[nodiscard]] Result<Endpoint> resolve(std::string_view host_port);
// The same, but returns the cause of `ctx` if it ends first, or has already ended. Parks; for a context that can end,
// inside tuza::run only (Errc::kNotRunning).
//
// The query then runs on a goroutine named "resolve", which the end of `ctx` does not interrupt: it goes on until the
// resolver gives up, as one of the 128, and its answer is dropped. Until then it is a goroutine like any other: a LeakCheck
// reports it; the end of tuza::run waits 200 ms for it, and leaves it behind.
[[nodiscard]] Result<Endpoint> resolve(const Context& ctx, std::string_view host_port);

// The same as resolve(), but return all addresses, at least one, in the resolver's order; of "localhost" both versions.
[[nodiscard]] Result<std::vector<Endpoint>> resolve_all(std::string_view host_port);
[[nodiscard]] Result<std::vector<Endpoint>> resolve_all(const Context& ctx, std::string_view host_port);

// As parse_endpoint() takes it.
std::string to_string(const Endpoint& endpoint);
std::ostream& operator<<(std::ostream& out, const Endpoint& endpoint);

// As system calls take it, and other libraries. Returns how many bytes of `name` it takes.
socklen_t to_sockaddr(const Endpoint& endpoint, struct sockaddr_storage& name);
// nullopt if the name is of another family than AF_INET and AF_INET6, or too short.
[[nodiscard]] std::optional<Endpoint> from_sockaddr(const struct sockaddr* name, socklen_t length);

}  // namespace tuza::net
