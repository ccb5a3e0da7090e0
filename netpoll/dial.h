// Public header, part of <tuza/net.h>.
//
// dial(): connections to others.
//
//     auto [ctx, cancel] = tuza::with_timeout(parent, 2s);
//     auto conn = tuza::net::dial(ctx, "tcp", "db:5432");        // netpoll/conn.h
//     if (!conn) return std::unexpected(conn.error());           // "dial db:5432: Connection refused"
//
// Thread-safe.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/netpoll/conn.h>
#include <tuza/sched/result.h>

#include <string_view>

namespace tuza {
class Context;
}

namespace tuza::net {

// Connects; `network` is "tcp", "tcp4", "tcp6" or "unix", as of listen() (netpoll/listener.h). An empty or unspecified host ("[::]:80", the address of a listener) is this machine.
//
// Of a name it tries all addresses of the network, IPv6 and IPv4 by turns in the resolver's order (RFC 8305): the next one
// when the attempt before has failed, or 250 ms after it has begun, and sooner if `deadline` is near; attempts that go on
// count as well. The first connection wins; if there is none, the error is that of the first address. A connection of a
// socket with itself, which TCP makes if nobody listens on a port that the system may give to clients, is ECONNREFUSED.
//
// The deadline includes the resolver, whose errors are those of resolve(); a query that outlasts it goes on in the background,
// as described there. After the deadline: Errc::kTimeout.
//
// Parks. Goroutines only.
[[nodiscard]] Result<Conn> dial(std::string_view network, std::string_view address,
                                TimePoint deadline = kNoDeadline);
// The same, but gives up when `ctx` ends, with its cause.
[[nodiscard]] Result<Conn> dial(const Context& ctx, std::string_view network, std::string_view address);

}  // namespace tuza::net
