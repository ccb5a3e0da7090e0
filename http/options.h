// Public header, part of <tuza/http.h>.
//
// Limits and timeouts of a server. The defaults are strict; each unit is in the type or in the name.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/http/refused_request.h>
#include <tuza/netpoll/network.h>
#include <tuza/netpoll/proxy_protocol.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tuza::http {

struct ServerOptions {
  // -- Limits on what a client may send.
  std::size_t request_line_bytes_max = 8 << 10;  // longer: 414
  std::size_t head_bytes_max = 32 << 10;         // request line and all header fields; more: 431
  std::size_t headers_max = 100;                 // more: 431; at most 256
  std::size_t body_bytes_max = 8 << 20;          // more: 413; body_limit() has another one for its routes
  // Of all bodies together that handlers hold as a whole (Request::body(), form(), json()), and of the messages of
  // WebSockets, beyond 16 KiB each. A request whose body does not fit any more gets 503 with Retry-After, a WebSocket
  // 1013. 0: no limit.
  std::size_t bodies_bytes_max = 512 << 20;
  // Bytes of a chunked body that are not data: sizes, extensions, trailers; in all, beyond eight for each byte
  // of data. More: 400.
  std::size_t chunk_overhead_bytes_max = 16 << 10;

  // -- Timeouts. A client that is too slow gets 408; between requests the connection is just closed.
  std::chrono::milliseconds header_timeout{10'000};  // from the first byte of a request to its last header
  std::chrono::milliseconds idle_timeout{75'000};    // between requests, and before the first
  // From the head of a request to the end of Request::context(), and of the handler's waits for the body (408) and for the
  // client that takes what it writes (closed), unless they have a context of their own; 0: no limit. It holds for downloads, too.
  std::chrono::milliseconds request_timeout{0};
  // All waits of the handler for the body may take this time, plus the time that the body takes at the minimum rate.
  std::chrono::milliseconds body_timeout{30'000};
  std::size_t body_rate_min_bytes_per_second = 1 << 10;
  // Time limit for reading the unread rest of a body after the handler has answered, to keep the connection. The answer
  // to a chunked body waits for that: whether the connection is kept must be known before.
  std::chrono::milliseconds skip_timeout{2'000};
  // How long all waits for a client that does not take its responses may last, beyond the time that they take at the
  // minimum rate; then the connection is closed. The time that a handler takes does not count.
  std::chrono::milliseconds write_timeout{30'000};
  std::uint32_t response_rate_min_bytes_per_second = 1
                                                     << 10;  // 0: only waits without any progress are limited

  // -- The server itself.
  // A connection ends with the response to this request, and with the first one after this age, less up to a tenth, so that
  // clients of a fleet do not all come back at once; 0: no limit. The response says "Connection: close".
  std::size_t requests_per_connection_max = 0;
  std::chrono::milliseconds connection_age_max{0};
  // Open at once; 0: what the descriptor limit allows. For a further one, that which has been idle for longest is closed; if
  // none is idle, it waits.
  std::size_t max_connections = 0;
  // From one IPv4 address, or one IPv6 network of 64 bits; further ones are closed at once. 0: no limit. Behind a proxy all
  // clients have its address, unless it speaks the PROXY protocol.
  std::size_t connections_per_address_max = 0;
  // With kRequired, each connection begins with a PROXY header (netpoll/proxy_protocol.h), which must be complete within
  // header_timeout, and connections that are not from `proxies` are closed at once. Request::remote() is then the client.
  net::ProxyProtocol proxy_protocol = net::ProxyProtocol::kOff;
  std::vector<net::Network> proxies{};
  // CONNECT reaches the handler, as CONNECT / with the target as Request::host(); otherwise it gets 501. For proxies: the
  // handler dials, and hijacks the connection. A response with 2xx has no body, and ends the connection.
  bool connect = false;
  // Of each connection's goroutine, on which handlers run; rounded up as GoOptions::stack_bytes. An untouched page costs
  // nothing. For single routes: stack_size() (http/middleware/stack_size.h).
  std::size_t stack_bytes = 1 << 20;
  std::chrono::milliseconds shutdown_timeout{10'000};  // for requests in flight; they are then cut off
  std::string server_name = "Tuza";                    // Server header; empty: no header
  // Is told of each request that no handler gets, before it is answered; on the connection's goroutine. Must be thread-safe,
  // and must not throw. For logs: refused_log().
  std::function<void(const RefusedRequest&)> on_refused{};
};

// Throws std::invalid_argument if headers_max is above 256, or server_name has a control character, or stack_bytes is above
// 64 MiB, or if there is a proxy_protocol, but no proxies.
void check(const ServerOptions& options);

}  // namespace tuza::http
