// Public header, part of <tuza/net.h>.
//
// A whole TCP server: listen, serve, and end on a signal.
//
//     return tuza::run([] {
//       return tuza::net::listen_and_serve("127.0.0.1:7000", [](tuza::net::Conn& conn) { ... });
//     });
//
// Thread-safe; but one at a time per process, because it handles the signals.
#pragma once

#include <tuza/netpoll/conn_handler.h>
#include <tuza/sched/result.h>

#include <string_view>

namespace tuza::net {

// Listens on `address` ("127.0.0.1:80", ":80", "unix:/run/app.sock"), logs "listening on HOST:PORT", and calls `handler`
// on a goroutine per connection, until SIGTERM or SIGINT. Then closes the listener and all connections, so that reads and
// writes of handlers return Errc::kClosed, and returns when the handlers have. A second signal ends the process at once
// with status 1. Errors: the address cannot be used, another SignalSet is open; Errc::kTimeout if a handler still runs
// Server::kNoticeTime after its connection was closed: what it uses must then outlive it. Throws std::invalid_argument
// without a handler. Parks.
[[nodiscard]] Result<void> listen_and_serve(std::string_view address, ConnHandler handler);

}  // namespace tuza::net
