// Resolves an address to the endpoints of a given network.
#pragma once

#include <tuza/netpoll/endpoint.h>

#include <string_view>
#include <vector>

namespace tuza::net {

// All endpoints of an address, at least one, in the resolver's order. `network` is "tcp", "tcp4" or "tcp6"; EPROTONOSUPPORT
// for other networks, EAFNOSUPPORT if the address has the other IP version only. Parks if the host is a name, until
// `ctx` ends at the latest: see resolve(). An address is an address also after the end of `ctx`.
Result<std::vector<Endpoint>> resolve_for(const Context& ctx, std::string_view network,
                                          std::string_view address);
// The same for dial(): where the address is unspecified, the loopback addresses of this machine.
Result<std::vector<Endpoint>> resolve_to_dial(const Context& ctx, std::string_view network,
                                              std::string_view address);

}  // namespace tuza::net
