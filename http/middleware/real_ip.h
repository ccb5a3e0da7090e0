// Public header, part of <tuza/http.h>.
//
// The address of the client behind proxies that you trust: Request::remote() and remote_endpoint(), for everything that asks
// afterwards, such as rate_limit() behind it and access logs around it.
//
//     app.use(tuza::http::real_ip({.trusted = {"10.0.0.0/8", "unix:"}}));
//
//     if (const auto* forwarded = req.get(tuza::http::kForwarded); forwarded && forwarded->proto == "http") ...
//
// Each proxy appends the address that it was connected from. So the list is read from its end, as long as the address is one
// of `trusted`, beginning with the peer of the connection; the first other one is the client. What stands before it may be
// anything: the client has written it. An entry that is no address ends the search: the last address before is taken. If the
// peer itself is not trusted, nothing is read.
//
// Name one kind of header, the one that your proxies write: they pass on the other as the client has sent it.
// Where a proxy speaks the PROXY protocol, ServerOptions::proxy_protocol does the same without headers.
#pragma once

#include <tuza/http/key.h>
#include <tuza/http/middleware.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tuza::http {

enum class ForwardedHeader : std::uint8_t {
  kXForwardedFor,  // X-Forwarded-For, and X-Forwarded-Proto and X-Forwarded-Host if they have one value
  kForwarded,      // RFC 7239
};

struct RealIpOptions {
  std::vector<std::string> trusted{};  // the proxies: as net::Network::parse() takes them
  ForwardedHeader header = ForwardedHeader::kXForwardedFor;
};

// What the trusted proxy says of the client's request; each empty if it says nothing, or nothing well formed.
struct Forwarded {
  std::string proto;  // "http" or "https"
  std::string host;   // "www.example.com", perhaps with a port
};
// Set for requests from trusted proxies.
inline constexpr Key<Forwarded> kForwarded;

// Throws std::invalid_argument if a network is malformed, or if there is none.
[[nodiscard]] Middleware real_ip(const RealIpOptions& options);

}  // namespace tuza::http
