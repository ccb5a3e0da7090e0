// Which endpoint an address means on a network.
#pragma once

#include <tuza/netpoll/endpoint.h>

#include <string_view>

namespace tuza::net {

// `network` is "tcp", "tcp4" or "tcp6"; EPROTONOSUPPORT if it is another, EAFNOSUPPORT if the address is of
// the other version. Parks if the host is a name: resolve().
Result<Endpoint> resolve_for(std::string_view network, std::string_view address);

}  // namespace tuza::net
