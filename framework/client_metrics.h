// Public header.
//
// Metrics of the requests of a service to others, those included that fail before anything is sent.
//
//     tuza::http::Client client({.middleware = {tuza::client_metrics(app.metrics()), tuza::http::retry()}});
//
//     http_client_requests_total{host,code}            counter    by host and status class, "1xx" to "5xx"; "none": no response
//     http_client_request_duration_seconds{host}       histogram  until the head of the response; buckets from 1 ms to 60 s
//
// A request costs a look-up of its host, and a few relaxed additions. Outside of retry() a request is a call with all its tries,
// inside it is a try; each hop of a redirect is a request. Hosts are those of the URLs, "api.example:8080".
#pragma once

#include <tuza/framework/metrics.h>
#include <tuza/http/client.h>

#include <cstddef>

namespace tuza {

struct ClientMetricsOptions {
  std::size_t hosts_max = 100;  // more are counted as "(others)"
};

// `metrics` need not outlive the middleware. Several clients may have it: they are counted together. Throws
// std::invalid_argument if the program has metrics of these names that are declared otherwise. May park.
[[nodiscard]] http::ClientMiddleware client_metrics(Metrics& metrics, ClientMetricsOptions options = {});

}  // namespace tuza
