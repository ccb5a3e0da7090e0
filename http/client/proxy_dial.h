// Connections through a proxy: forwarded by it, or a tunnel that it opens (CONNECT, RFC 9110 9.3.6; SOCKS5).
//
// Thread-safe. Parks.
#pragma once

#include <tuza/http/client/proxy.h>
#include <tuza/http/url.h>
#include <tuza/netpoll/conn.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>

namespace tuza::http {

// A connection to the proxy if it is to forward requests, otherwise one to the server. Not encrypted yet: for an https URL, TLS
// begins inside. Errors have the proxy in front, and what it has answered.
// Errc::kBadMessage: it does not speak its protocol.
[[nodiscard]] Result<net::Conn> dial_through(const Context& ctx, const Proxy& proxy, const Url& url,
                                             bool forwarded);

}  // namespace tuza::http
