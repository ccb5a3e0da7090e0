// Public header.
//
// The metrics of a service for Prometheus: the runtime, the process, HTTP, and those that the program declares.
//
//     auto metrics = std::make_shared<tuza::Metrics>();
//     tuza::http::Server server(tuza::http::with(std::move(router), metrics->middleware()));
//     metrics->add_server([&server] { return server.stats(); });
//     auto admin = tuza::make_admin_router({.metrics = metrics});             // serves /metrics
//
// A request costs two clock readings, a lookup of its pattern, and six relaxed additions to counters of its own P. Numbers of the runtime and
// the process are read only when the metrics are requested. Without the middleware, requests cost nothing and are
// not counted.
//
// A program declares its own metrics here as well; framework/metric.h has their handles. With tuza::App the object is
// app.metrics().
//
// Thread-safe, except for set_log_lines_dropped(), which must be called before any other use.
#pragma once

#include <tuza/framework/metric.h>
#include <tuza/http/client.h>
#include <tuza/http/middleware.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/http/server_stats.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/time/resource_limits.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tuza {

class HttpCounts;
class OwnMetrics;
class RouteCounts;

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
  // Adds the upstreams of a proxy, with `name` as their label `proxy`; those of one name are added up. `stats`: as above.
  void add_proxy(std::string name, std::function<std::vector<http::UpstreamStats>()> stats);
  // Adds a ResourcePool, with `name` as its label `pool`; those of one name are added up. `stats`: as above.
  void add_pool(std::string name, std::function<ResourceStats()> stats);
  // Adds the connections of a client, with `name` as their label `client`; those of one name are added up. `stats`: as above.
  void add_client(std::string name, std::function<http::ClientStats()> stats);
  void set_log_lines_dropped(std::function<std::uint64_t()> dropped);

  // -- The program's own metrics. A name consists of letters, digits, "_" and ":", and does not begin with a digit;
  // those that begin with tuza_ or process_, and those of docs/reference/metrics.md, are taken. Declaring a metric again
  // returns the same one, if its kind, labels and buckets are the same. Throws std::invalid_argument, naming the metric,
  // if they differ, or if the declaration is malformed. May be called in any goroutine or thread, before tuza::run as
  // well; keep what it returns. May park.

  // `help` is one sentence. The name of a counter ends in _total by convention.
  [[nodiscard]] Counter counter(std::string_view name, std::string_view help);
  [[nodiscard]] MetricFamily<Counter> counter(std::string_view name, std::string_view help,
                                              std::vector<std::string> labels);
  [[nodiscard]] Gauge gauge(std::string_view name, std::string_view help);
  [[nodiscard]] MetricFamily<Gauge> gauge(std::string_view name, std::string_view help,
                                          std::vector<std::string> labels);
  // `buckets`: their upper bounds, finite and ascending; one more bucket, without a bound, is added. A bound belongs to
  // its bucket. Times are in seconds.
  [[nodiscard]] Histogram histogram(std::string_view name, std::string_view help,
                                    std::vector<double> buckets);
  [[nodiscard]] MetricFamily<Histogram> histogram(std::string_view name, std::string_view help,
                                                  std::vector<double> buckets,
                                                  std::vector<std::string> labels);

  // -- For servers and pages.

  // All metrics in the text format of Prometheus, version 0.0.4. Scans all goroutines and reads /proc. Parks.
  [[nodiscard]] std::string prometheus_text() const;
  static constexpr const char* kContentType = "text/plain; version=0.0.4; charset=utf-8";

  // Requests answered, requests in flight, and bytes of response bodies, since the start.
  struct Http {
    std::uint64_t requests = 0, errors = 0;  // errors: status 5xx, or no response
    std::int64_t in_flight = 0;
    std::uint64_t response_bytes = 0;
    std::uint64_t duration_ns = 0;  // the sum over all requests
    // Requests by duration, as in http_request_duration_seconds, but each counted in one bucket only.
    std::array<std::uint64_t, 16> duration_buckets{};
    http::ServerStats servers;
  };
  [[nodiscard]] Http http() const;

  // What add_pool(), add_client() and add_proxy() have added: each name, or pair of names, once.
  struct Upstream {
    std::string proxy;
    http::UpstreamStats stats;
  };
  struct Connections {
    std::map<std::string, ResourceStats> pools;
    std::map<std::string, http::ClientStats> clients;
    std::vector<Upstream> upstreams;
  };
  [[nodiscard]] Connections connections() const;

 private:
  [[nodiscard]] http::ServerStats all_servers() const;

  std::shared_ptr<HttpCounts> http_;
  std::shared_ptr<RouteCounts> routes_;
  std::unique_ptr<OwnMetrics> own_;
  mutable Mutex mutex_;
  std::vector<std::function<http::ServerStats()>> servers_ TUZA_GUARDED_BY(mutex_);
  struct Proxy {
    std::string name;
    std::function<std::vector<http::UpstreamStats>()> stats;
  };
  std::vector<Proxy> proxies_ TUZA_GUARDED_BY(mutex_);
  struct Pool {
    std::string name;
    std::function<ResourceStats()> stats;
  };
  std::vector<Pool> pools_ TUZA_GUARDED_BY(mutex_);
  struct Client {
    std::string name;
    std::function<http::ClientStats()> stats;
  };
  std::vector<Client> clients_ TUZA_GUARDED_BY(mutex_);
  std::function<std::uint64_t()> log_lines_dropped_;
};

}  // namespace tuza
