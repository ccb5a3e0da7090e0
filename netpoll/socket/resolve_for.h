// Resolves an address to an endpoint of a given network.
#pragma once

#include <tuza/netpoll/endpoint.h>

#include <string_view>

namespace tuza::net {

// `network` is "tcp", "tcp4" or "tcp6"; EPROTONOSUPPORT for other networks, EAFNOSUPPORT if the address has
// the other IP version. Parks if the host is a name: see resolve().
Result<Endpoint> resolve_for(std::string_view network, std::string_view address);

}  // namespace tuza::net
