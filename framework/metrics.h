// Public header.
//
// The metrics of a service for Prometheus: the runtime, the process, HTTP.
//
//     auto metrics = std::make_shared<tuza::Metrics>();
//     tuza::http::Server server(tuza::http::with(std::move(router), metrics->middleware()));
//     metrics->add_server([&server] { return server.stats(); });
//     auto admin = tuza::make_admin_router({.metrics = metrics});             // serves /metrics
//
// A request costs two clock readings and five relaxed additions to counters of its own P. Numbers of the runtime and
// the process are read only when the metrics are requested. Without the middleware, requests cost nothing and are
// not counted.
//
// Thread-safe, except for add_server() and set_log_lines_dropped(), which must be called before any other use.
#pragma once

#include <tuza/http/middleware.h>
#include <tuza/http/server_stats.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tuza {

class HttpCounts;

class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Counts and times the requests of the handlers that it wraps. Install it outermost, so that it also times the
  // other middleware. May be called any number of times; the returned middleware may outlive this object. With
  // `access_log` the middleware also writes the access log (framework/access_log.h), from the same clock readings.
  [[nodiscard]] http::Middleware middleware(bool access_log = false);

  // Adds a source for counts of connections and refused requests; the counts of several servers are added up.
  // `stats` must stay callable for as long as this object may be queried.
  void add_server(std::function<http::ServerStats()> stats);
  void set_log_lines_dropped(std::function<std::uint64_t()> dropped);

  // All metrics in the text format of Prometheus, version 0.0.4. Scans all goroutines and reads /proc. Parks.
  [[nodiscard]] std::string prometheus_text() const;
  static constexpr const char* kContentType = "text/plain; version=0.0.4; charset=utf-8";

  // Requests answered, requests in flight, and bytes of response bodies, since the start.
  struct Http {
    std::uint64_t requests = 0, errors = 0;  // errors: status 5xx, or no response
    std::int64_t in_flight = 0;
    std::uint64_t response_bytes = 0;
    std::uint64_t duration_ns = 0;  // the sum over all requests
    http::ServerStats servers;
  };
  [[nodiscard]] Http http() const;

 private:
  [[nodiscard]] http::ServerStats all_servers() const;

  std::shared_ptr<HttpCounts> http_;
  std::vector<std::function<http::ServerStats()>> servers_;
  std::function<std::uint64_t()> log_lines_dropped_;
};

}  // namespace tuza
