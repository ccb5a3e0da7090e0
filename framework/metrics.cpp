#include <tuza/framework/metrics.h>

#include <tuza/framework/log/current.h>
#include <tuza/framework/log/request_line.h>
#include <tuza/framework/metrics/http_counts.h>
#include <tuza/framework/metrics/own_metrics.h>
#include <tuza/framework/metrics/prometheus_text.h>
#include <tuza/framework/metrics/route_counts.h>
#include <tuza/sched/rt/base/clock.h>

#include <algorithm>
#include <utility>

namespace tuza {

namespace {

MetricDeclaration declaration(MetricKind kind, std::string_view name, std::string_view help,
                              std::vector<std::string> labels, std::vector<double> bounds = {}) {
  return {.name = std::string(name),
          .help = std::string(help),
          .kind = kind,
          .labels = std::move(labels),
          .bounds = std::move(bounds)};
}

void add(http::ClientStats& sum, const http::ClientStats& one) {
  sum.open += one.open;
  sum.idle += one.idle;
  sum.waiting += one.waiting;
  sum.dialled += one.dialled;
  sum.requests += one.requests;
  sum.repeated += one.repeated;
}

// It is up if one of both is.
void add(http::UpstreamStats& sum, const http::UpstreamStats& one) {
  if (!one.left_out && !one.unhealthy) sum.left_out = sum.unhealthy = false;
  sum.active += one.active;
  sum.requests += one.requests;
  sum.failures += one.failures;
  sum.checks += one.checks;
  sum.checks_failed += one.checks_failed;
  add(sum.client, one.client);
}

void add(ResourceStats& sum, const ResourceStats& one) {
  sum.open += one.open;
  sum.in_use += one.in_use;
  sum.idle += one.idle;
  sum.waiting += one.waiting;
  sum.waited += one.waited;
  sum.wait_time += one.wait_time;
  sum.opened += one.opened;
  sum.open_failed += one.open_failed;
  sum.closed_idle_timeout += one.closed_idle_timeout;
  sum.closed_idle_max += one.closed_idle_max;
  sum.closed_life += one.closed_life;
  sum.closed_check += one.closed_check;
  sum.closed_broken += one.closed_broken;
  sum.closed_at_end += one.closed_at_end;
}

}  // namespace

Metrics::Metrics()
    : http_(std::make_shared<HttpCounts>()),
      routes_(std::make_shared<RouteCounts>()),
      own_(std::make_unique<OwnMetrics>()) {}
Metrics::~Metrics() = default;

http::Middleware Metrics::middleware(bool access_log) {
  return [counts = http_, routes = routes_, access_log](http::Handler next) -> http::Handler {
    return [counts, routes, access_log, next = std::move(next)](http::Request& request,
                                                                http::ResponseWriter& response) {
      counts->begin();
      const std::int64_t begun = rt::now_ns();
      http::observe(next, request, response, [&](int status) {
        const std::int64_t ended = rt::now_ns();
        counts->end(request.method(), status, response.bytes_written());
        routes->add(request.pattern(), status, ended - begun);
        if (access_log && logging::wants(LogLevel::kInfo)) {
          logging::log_request(request, response, status, begun, ended);
        }
      });
    };
  };
}

Counter Metrics::counter(std::string_view name, std::string_view help) {
  return counter(name, help, {}).with();
}
MetricFamily<Counter> Metrics::counter(std::string_view name, std::string_view help,
                                       std::vector<std::string> labels) {
  return MetricFamily<Counter>(
      own_->declare(declaration(MetricKind::kCounter, name, help, std::move(labels))));
}

Gauge Metrics::gauge(std::string_view name, std::string_view help) { return gauge(name, help, {}).with(); }
MetricFamily<Gauge> Metrics::gauge(std::string_view name, std::string_view help,
                                   std::vector<std::string> labels) {
  return MetricFamily<Gauge>(own_->declare(declaration(MetricKind::kGauge, name, help, std::move(labels))));
}

Histogram Metrics::histogram(std::string_view name, std::string_view help, std::vector<double> buckets) {
  return histogram(name, help, std::move(buckets), {}).with();
}
MetricFamily<Histogram> Metrics::histogram(std::string_view name, std::string_view help,
                                           std::vector<double> buckets, std::vector<std::string> labels) {
  return MetricFamily<Histogram>(
      own_->declare(declaration(MetricKind::kHistogram, name, help, std::move(labels), std::move(buckets))));
}

void Metrics::add_server(std::function<http::ServerStats()> stats) {
  const LockGuard lock(mutex_);
  servers_.push_back(std::move(stats));
}

void Metrics::add_proxy(std::string name, std::function<std::vector<http::UpstreamStats>()> stats) {
  const LockGuard lock(mutex_);
  proxies_.push_back({std::move(name), std::move(stats)});
}

void Metrics::add_pool(std::string name, std::function<ResourceStats()> stats) {
  const LockGuard lock(mutex_);
  pools_.push_back({std::move(name), std::move(stats)});
}

void Metrics::add_client(std::string name, std::function<http::ClientStats()> stats) {
  const LockGuard lock(mutex_);
  clients_.push_back({std::move(name), std::move(stats)});
}

void Metrics::set_log_lines_dropped(std::function<std::uint64_t()> dropped) {
  log_lines_dropped_ = std::move(dropped);
}

http::ServerStats Metrics::all_servers() const {
  http::ServerStats sum;
  const LockGuard lock(mutex_);
  for (const auto& ask : servers_) {
    const http::ServerStats one = ask();
    sum.accepted += one.accepted;
    sum.open += one.open;
    sum.connections.over_address_max += one.connections.over_address_max;
    sum.connections.not_from_proxy += one.connections.not_from_proxy;
    sum.connections.bad_proxy_headers += one.connections.bad_proxy_headers;
    sum.connections.no_memory += one.connections.no_memory;
    sum.connections.made_room += one.connections.made_room;
    for (std::size_t i = 0; i < sum.refused.size(); ++i) sum.refused[i] += one.refused[i];
    sum.bodies_bytes += one.bodies_bytes;
    sum.idle_timeouts += one.idle_timeouts;
    sum.header_timeouts += one.header_timeouts;
    sum.body_timeouts += one.body_timeouts;
    sum.write_timeouts += one.write_timeouts;
    sum.handshake_timeouts += one.handshake_timeouts;
    sum.tls_failures += one.tls_failures;
    sum.handlers_thrown += one.handlers_thrown;
  }
  return sum;
}

// Prometheus refuses a page on which a series is twice; an upstream may be, to get two turns of three.
Metrics::Connections Metrics::connections() const {
  Connections all;
  const LockGuard lock(mutex_);
  for (const Pool& pool : pools_) add(all.pools[pool.name], pool.stats());
  for (const Client& client : clients_) add(all.clients[client.name], client.stats());
  for (const Proxy& proxy : proxies_) {
    for (http::UpstreamStats& one : proxy.stats()) {
      const auto same = std::ranges::find_if(all.upstreams, [&](const Upstream& other) {
        return other.proxy == proxy.name && other.stats.name == one.name;
      });
      if (same == all.upstreams.end()) {
        all.upstreams.push_back({proxy.name, std::move(one)});
      } else {
        add(same->stats, one);
      }
    }
  }
  return all;
}

std::string Metrics::prometheus_text() const {
  MetricsSnapshot snapshot;
  snapshot.sched = sched_stats();
  snapshot.goroutines = count_goroutines();
  snapshot.process = process_stats();
  snapshot.http = http_->sum();
  snapshot.routes = routes_->sums();
  snapshot.servers = all_servers();
  snapshot.connections = connections();
  snapshot.own = own_->snapshot();
  if (log_lines_dropped_) snapshot.log_lines_dropped = log_lines_dropped_();
  return tuza::prometheus_text(snapshot);
}

Metrics::Http Metrics::http() const {
  const HttpCounts::Sum sum = http_->sum();
  Http result;
  for (const auto& method : sum.requests) {
    for (std::size_t c = 0; c < method.size(); ++c) {
      result.requests += method[c];
      if (c == 0 || c + 1 == method.size()) result.errors += method[c];
    }
  }
  result.in_flight = static_cast<std::int64_t>(sum.begun - std::min(sum.begun, result.requests));
  result.response_bytes = sum.response_bytes;
  const RouteCounts::Durations durations = RouteCounts::total(routes_->sums());
  result.duration_ns = durations.duration_ns;
  result.duration_buckets = durations.buckets;
  result.servers = all_servers();
  return result;
}

}  // namespace tuza
