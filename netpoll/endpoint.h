// Public header, part of <tuza/net.h>.
//
// Addresses, as text and as Asio's types.
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

// asio::ip::tcp::endpoint, without the weight of <asio/ip/tcp.hpp>.
using Endpoint = asio::ip::basic_endpoint<asio::ip::tcp>;

// "127.0.0.1:80", "[::1]:80", ":80" (every address of this machine, both versions of IP). The host must be
// an address; names go through resolve(). Errc::kBadAddress if it is none.
Result<Endpoint> parse_endpoint(std::string_view host_port);

// As parse_endpoint(), and also "localhost:80" or "db.example.org:5432": asks the system's resolver and
// returns what it prefers. That is a blocking call (sched/blocking.h), and parks; addresses do not need it.
Result<Endpoint> resolve(std::string_view host_port);

std::string to_string(const Endpoint& endpoint);

}  // namespace tuza::net
