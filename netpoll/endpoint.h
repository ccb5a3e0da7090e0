// Public header, part of <tuza/net.h>.
//
// Conversion of network addresses between text and Asio's types.
//
//     tuza::net::Endpoint here = tuza::net::parse_endpoint("[::1]:8080").value();
//     std::string text = tuza::net::to_string(here);                                 // "[::1]:8080"
//
// Thread-safe.
#pragma once

#include <tuza/sched/result.h>

#include <asio/ip/address.hpp>
#include <asio/ip/basic_endpoint.hpp>

#include <string>
#include <string_view>

namespace asio::ip {
class tcp;
}

namespace tuza::net {

// The same type as asio::ip::tcp::endpoint, without the cost of including <asio/ip/tcp.hpp>.
using Endpoint = asio::ip::basic_endpoint<asio::ip::tcp>;

// "127.0.0.1:80", "[::1]:80", ":80" (every address of this machine, IPv4 and IPv6). The host must be an
// address; use resolve() for names. Errc::kBadAddress if the text is not a valid address.
[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view host_port);

// Like parse_endpoint(), but also accepts names, such as "db.example.org:5432": asks the system's resolver and
// returns its preferred address. The query is a blocking call (sched/blocking.h), and parks; addresses need no
// query. Neither does "localhost", nor a name below it: 127.0.0.1, always (RFC 6761). Errc::kNoSuchHost if the name does
// not exist; Errc::kResolverFailed if that is not known, because the name servers do not answer: it may succeed later.
[[nodiscard]] Result<Endpoint> resolve(std::string_view host_port);

std::string to_string(const Endpoint& endpoint);

}  // namespace tuza::net
