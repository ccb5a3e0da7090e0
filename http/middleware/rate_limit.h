// Public header, part of <tuza/http.h>.
//
// Limits how often each client may ask: a token bucket (rate::Limiter) per key.
//
//     app.use(tuza::http::rate_limit({.per_second = 10, .burst = 40}));
//     api.use(tuza::http::rate_limit({.per_second = 1, .burst = 5, .key = [](http::Request& req) {
//       return std::string(req.header("X-Api-Key").value_or(""));
//     }}));
//
// More requests get 429 with Retry-After. The key is the client's address; of an IPv6 address its first 64 bits, because one
// client has all of the rest. At most `keys_max` keys are remembered: a new one takes the place of one that has not
// asked for the longest time, whose bucket then is full again. Behind a proxy all clients have its address, and over a
// Unix socket none: they share one bucket, unless real_ip() or the PROXY protocol says who they are. Or use a key.
//
// The state is in 16 parts with a lock each; a known key of up to 64 bytes allocates nothing.
#pragma once

#include <tuza/http/middleware.h>

#include <cstddef>
#include <functional>
#include <string>

namespace tuza::http {

struct RateLimitOptions {
  double per_second = 0;  // must be set
  int burst = 1;
  std::size_t keys_max = 65'536;  // up to 250 bytes each, however long they are
  // Empty: the address. A request with an empty key is not limited. Must be thread-safe.
  std::function<std::string(Request&)> key{};
};

// Throws std::invalid_argument if a number is not positive.
[[nodiscard]] Middleware rate_limit(RateLimitOptions options);

}  // namespace tuza::http
