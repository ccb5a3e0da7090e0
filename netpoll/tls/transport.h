// Creates the TLS transport for connections accepted by a listener.
#pragma once

#include <tuza/netpoll/detail/owners.h>

#include <memory>

namespace tuza::net {
class TlsServer;
}

namespace tuza::net::tls {

// Makes the layer between a Conn and its `descriptor`; null if there is no memory. Does not park; the
// handshake happens with the first use.
detail::TransportOwner make_server_transport(Descriptor& descriptor,
                                             const std::shared_ptr<TlsServer>& server);

}  // namespace tuza::net::tls
