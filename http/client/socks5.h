// SOCKS5 (RFC 1928) as its client: a stream to a server through a proxy, with user and password (RFC 1929) if the proxy wants
// them.
//
//     client: methods           [ user, password ]           CONNECT address
//     proxy:           method                       status                    reply, then the stream
//
// Exactly the bytes of each message are read: what follows the reply is the server's.
//
// Thread-safe. Parks.
#pragma once

#include <tuza/http/client/proxy.h>
#include <tuza/http/url.h>
#include <tuza/netpoll/conn.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>

namespace tuza::http {

// Afterwards `conn` is the stream to the URL's server. A reply of the proxy is an error with its meaning, and with the code that
// a direct connection would have had: std::errc::connection_refused. Errc::kBadMessage: it does not speak SOCKS5.
[[nodiscard]] Result<void> connect_by_socks5(const Context& ctx, net::Conn& conn, const Proxy& proxy,
                                             const Url& url);

}  // namespace tuza::http
