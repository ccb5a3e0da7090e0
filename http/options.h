// Public header, part of <tuza/http.h>.
//
// Limits and timeouts of a server. The defaults are strict; each unit is in the type or in the name.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace tuza::http {

struct ServerOptions {
  // -- Limits on what a client may send.
  std::size_t request_line_bytes_max = 8 << 10;  // longer: 414
  std::size_t head_bytes_max = 32 << 10;         // request line and all header fields; more: 431
  std::size_t headers_max = 100;                 // more: 431; at most 256
  std::size_t body_bytes_max = 8 << 20;          // more: 413
  // Bytes of a chunked body that are not data: sizes, extensions, trailers. More in a row, without a byte of
  // data: 400.
  std::size_t chunk_overhead_bytes_max = 16 << 10;

  // -- Timeouts. A client that is too slow gets 408; between requests the connection is just closed.
  std::chrono::milliseconds header_timeout{10'000};  // from the first byte of a request to its last header
  std::chrono::milliseconds idle_timeout{75'000};    // between requests, and before the first
  // The body must arrive within this time plus the time it takes at the minimum rate.
  std::chrono::milliseconds body_timeout{30'000};
  std::size_t body_rate_min_bytes_per_second = 1 << 10;
  // Time limit for reading the unread rest of a body after the handler has answered, to keep the connection.
  std::chrono::milliseconds skip_timeout{2'000};
  // Time without any progress. There is no minimum rate: a client that takes a few bytes now and then may
  // prolong a response indefinitely.
  std::chrono::milliseconds write_timeout{30'000};

  // -- The server itself.
  std::size_t max_connections = 0;                     // open at once; 0: what the descriptor limit allows
  std::chrono::milliseconds shutdown_timeout{10'000};  // for requests in flight; they are then cut off
  std::string server_name = "Tuza";                    // Server header; empty: no header
};

}  // namespace tuza::http
