// Public header, part of <tuza/http.h>.
//
// Middleware of a client: a server that fails is not asked for a while, by origin.
//
//                failures_max failures in a row
//     closed ------------------------------------> open <--.
//       ^                                            |     | it fails
//       | it answers                          pause  |     |
//       `---------------- half-open: one request <---'-----'
//
//     tuza::http::Client client({.middleware = {tuza::http::retry(), tuza::http::circuit_breaker()}});
//     ...
//     if (!res && tuza::http::is_circuit_open(res.error())) return cached();
//
// While a circuit is open, or another request finds out, requests fail at once: "circuit open for https://api.example, for 9.8 s
// more: ...", with the last failure. Nothing is sent, and retry() does not repeat them.
//
// Failures are errors, timeouts of the context included, and the statuses of `statuses`. Neither a failure nor a success is a
// request that its caller has cancelled, and one that the client refuses. Requests that were on their way when the circuit
// opened change nothing.
//
// A reverse proxy leaves out upstreams by itself (ReverseProxyOptions::failures_max). Times are those of tuza::now().
#pragma once

#include <tuza/http/client.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace tuza::http {

enum class CircuitState : std::uint8_t { kClosed, kOpen, kHalfOpen };

struct CircuitBreakerOptions {
  int failures_max = 5;                     // in a row
  std::chrono::milliseconds pause{10'000};  // from the last failure to the request that finds out
  std::vector<int> statuses{502, 503, 504};
  // Origins with failures that are remembered; beyond it, the one whose last failure is oldest is forgotten.
  std::size_t origins_max = 1'000;
  // Is told of each change, for logs and metrics. Must be thread-safe, and must not throw.
  std::function<void(std::string_view origin, CircuitState state)> on_change{};
};

// Throws std::invalid_argument if failures_max, pause or origins_max is not positive.
[[nodiscard]] ClientMiddleware circuit_breaker(CircuitBreakerOptions options = {});
[[nodiscard]] bool is_circuit_open(const Error& error);

}  // namespace tuza::http
