// Public header, part of <tuza/http.h>.
//
// What a server has counted: connections, and what its handlers do not see.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tuza::http {

// Statuses with which the server itself refuses requests.
inline constexpr std::array<int, 8> kRefusedStatuses{400, 408, 413, 414, 417, 431, 501, 505};

// Since the server was made. Each number is exact; they are not of one instant.
struct ServerStats {
  std::uint64_t accepted = 0;  // connections
  std::size_t open = 0;        // connections, now

  // Requests that were answered with kRefusedStatuses[i]. If a handler was running, because the body was what
  // could not be served, middleware has seen the request, too.
  std::array<std::uint64_t, kRefusedStatuses.size()> refused{};

  // Connections that ended because the client was too slow: with nothing between two requests, with a head,
  // with a body, with taking the response.
  std::uint64_t idle_timeouts = 0;
  std::uint64_t header_timeouts = 0;
  std::uint64_t body_timeouts = 0;
  std::uint64_t write_timeouts = 0;
  std::uint64_t handshake_timeouts = 0;  // the same with TLS' handshake

  // Connections that ended because TLS failed: their handshake was refused, by either side, or a record was
  // broken. Not: the client went away.
  std::uint64_t tls_failures = 0;

  std::uint64_t handlers_thrown = 0;  // exceptions that left a handler
};

// The server's own: each is added to where something ends or fails, never for a request that goes well.
// Relaxed: nothing is concluded from one about another.
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
