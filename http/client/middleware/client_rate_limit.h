// Public header, part of <tuza/http.h>.
//
// Middleware of a client: requests wait until they may be sent, for servers that allow so many per second.
//
//     tuza::http::Client client({.middleware = {tuza::http::retry(),
//                                               tuza::http::client_rate_limit({.per_second = 10, .burst = 20})}});
//
// A token bucket (rate::Limiter), first come, first served. Inside of retry() it counts repetitions, too; redirects count as
// requests. A request whose context would end before its turn is Errc::kTimeout at once, and takes no turn.
#pragma once

#include <tuza/http/client.h>

#include <cstddef>

namespace tuza::http {

struct ClientRateLimitOptions {
  double per_second = 0;  // must be set
  int burst = 1;
  // Each origin has a bucket of its own. At most `origins_max` are remembered: a new one takes the place of the one that has
  // not been asked for the longest time.
  bool per_origin = false;
  std::size_t origins_max = 1'000;
};

// Throws std::invalid_argument if a number is not positive.
[[nodiscard]] ClientMiddleware client_rate_limit(ClientRateLimitOptions options);

}  // namespace tuza::http
