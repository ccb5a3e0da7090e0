// Public header, part of <tuza/net.h>.
//
// A network of addresses, "10.0.0.0/8": whose word is trusted, such as that of the proxies in front of a server.
//
//     const tuza::net::Network inside = tuza::net::Network::parse("10.0.0.0/8").value();
//     if (inside.contains(endpoint.address())) ...
//
// An IPv4 address that a socket of IPv6 reports as ::ffff:10.1.2.3 is the IPv4 address.
//
// Thread-safe: a value.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/netpoll/endpoint.h>
#include <tuza/sched/result.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tuza::net {

class Network {
 public:
  // "10.0.0.0/8", "2001:db8::/32", "192.0.2.1" (this address alone), or "unix:" (every peer of a Unix socket).
  // Errc::kBadAddress for other texts, among them "10.0.0.1/8": bits behind the prefix are an error of whoever wrote them.
  [[nodiscard]] static Result<Network> parse(std::string_view text);
  // Drops the bits behind the prefix instead: "10.1.2.3/8" is 10.0.0.0/8. For lists that other programs read, too.
  [[nodiscard]] static Result<Network> parse_masked(std::string_view text);

  [[nodiscard]] bool contains(const IpAddress& address) const;
  // nullopt: the peer of a Unix socket.
  [[nodiscard]] bool contains(const std::optional<Endpoint>& peer) const {
    return peer ? contains(peer->address()) : unix_;
  }
  // As parse() takes it, always with the prefix.
  [[nodiscard]] std::string text() const;

  friend bool operator==(const Network&, const Network&) = default;

 private:
  Network() = default;
  [[nodiscard]] static Result<Network> parse(std::string_view text, bool masks);

  std::array<std::uint8_t, 16> bytes_{};  // of IPv4 as ::ffff:a.b.c.d
  std::uint8_t prefix_bits_ = 0;          // of these
  bool unix_ = false;
};

// Whether one of the networks contains it.
[[nodiscard]] bool any_contains(std::span<const Network> networks, const std::optional<Endpoint>& peer);
[[nodiscard]] bool any_contains(std::span<const Network> networks, const IpAddress& address);

}  // namespace tuza::net
