// Public header, part of <tuza/http.h>.
//
// Counters of a server: connections, and events that its handlers do not see.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/netpoll/serve.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tuza::http {

// Status codes with which the server itself refuses requests.
inline constexpr std::array<int, 10> kRefusedStatuses{400, 408, 413, 414, 417, 421, 431, 501, 503, 505};

// Counted since the server was made. Each number is exact, but the numbers are not a snapshot of one instant.
struct ServerStats {
  std::uint64_t accepted = 0;  // connections
  std::size_t open = 0;        // connections, currently
  // Connections that were closed before their first request, and idle ones that were closed for others.
  net::ServeStats connections;

  // Requests that were answered with kRefusedStatuses[i]. If a handler was already running, because the error
  // was in the body, middleware has seen the request too.
  std::array<std::uint64_t, kRefusedStatuses.size()> refused{};

  // Of request bodies that handlers hold as a whole, currently; those of up to 16 KiB do not count.
  std::size_t bodies_bytes = 0;

  // Connections that ended because the client was too slow: idle between two requests, in sending a head, in
  // sending a body, in taking the response.
  std::uint64_t idle_timeouts = 0;
  std::uint64_t header_timeouts = 0;
  std::uint64_t body_timeouts = 0;
  std::uint64_t write_timeouts = 0;
  std::uint64_t handshake_timeouts = 0;  // the same, in the TLS handshake

  // Connections that ended because TLS failed: either side refused the handshake, or a record was broken. A
  // client that disconnects is not counted.
  std::uint64_t tls_failures = 0;

  std::uint64_t handlers_thrown = 0;  // exceptions that escaped a handler
};

// The server's own counters. A counter is incremented only where something ends or fails, never for a
// successful request. Relaxed: no conclusion is drawn from one counter about another.
class ServerCounters {
 public:
  using Counter = std::atomic<std::uint64_t>;
  static void add(Counter& counter) { counter.fetch_add(1, std::memory_order_relaxed); }
  void add_refused(int status);
  [[nodiscard]] ServerStats read(std::size_t open) const;

  Counter accepted{0}, idle_timeouts{0}, header_timeouts{0}, body_timeouts{0}, write_timeouts{0},
      handshake_timeouts{0}, tls_failures{0}, handlers_thrown{0};

 private:
  std::array<Counter, kRefusedStatuses.size()> refused_{};
};

}  // namespace tuza::http
