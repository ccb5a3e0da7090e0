// Public header, part of <tuza/http.h>.
//
// Middleware of a client: retries failed requests after a pause, within a budget that keeps retries from making an overload worse.
//
//     tuza::http::Client client({.middleware = {tuza::http::retry()}});
//
// What has failed: a connection that cannot be made or breaks off before the head of a response, a timeout, and the statuses of
// `statuses`. Not an error that a repetition would meet again: a host that does not exist, a certificate, a response that breaks
// the protocol. Nor what ends with the context: every try and every pause counts on it.
//
// What may be repeated: idempotent methods (RFC 9110 9.2.2), and any with an Idempotency-Key; and all methods if nothing was sent,
// because there was no connection. The body must be a text: one with a source is sent once. Once a response has a head it is
// the caller's: a body that breaks off is not asked for again.
//
// The pause is random, from 0 to a limit that doubles with each try (full jitter), so that the clients of a server that was down
// do not come back together. With Retry-After, in seconds or as a date, it comes on top. If the context would end before the
// pause does, there is none, and the failure is returned at once.
//
// The budget is one token bucket for all requests of this middleware, and of the clients that share it: each request adds
// `budget_ratio` of a token, each repetition takes one. When all requests fail, their number grows by this ratio, and not to a
// multiple of it. Without a token the failure is returned.
//
// Redirects are requests of their own, with tries of their own. Times are those of tuza::now().
#pragma once

#include <tuza/http/client.h>

#include <chrono>
#include <vector>

namespace tuza::http {

struct RetryOptions {
  int tries_max = 3;                                  // of one request, the first included
  std::chrono::milliseconds backoff{100};             // at most, before the second try; then twice that, ...
  std::chrono::milliseconds backoff_max{10'000};      // at most, before any
  std::chrono::milliseconds retry_after_max{30'000};  // a response that asks for more is returned
  std::vector<int> statuses{429, 502, 503, 504};
  double budget_ratio = 0.2;  // repetitions per request
  int budget_burst = 10;      // tokens in the beginning, and at most
};

// Throws std::invalid_argument for a number that is negative, or tries_max below 1.
[[nodiscard]] ClientMiddleware retry(RetryOptions options = {});

}  // namespace tuza::http
