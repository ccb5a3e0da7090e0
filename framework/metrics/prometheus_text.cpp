// Serializes the metrics for Prometheus. This is the only file that includes prometheus-cpp, of which it uses only the
// data types and the serializer.
#include <tuza/framework/metrics/prometheus_text.h>

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace tuza {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;

MetricType type_of(MetricKind kind) {
  switch (kind) {
    case MetricKind::kCounter: return MetricType::Counter;
    case MetricKind::kGauge: return MetricType::Gauge;
    case MetricKind::kHistogram: return MetricType::Histogram;
  }
  return MetricType::Untyped;
}

// `counts`: observations per bucket.
ClientMetric::Histogram histogram_of(std::span<const std::uint64_t> counts, std::span<const double> bounds,
                                     double sum) {
  ClientMetric::Histogram histogram;
  for (std::size_t b = 0; b < counts.size(); ++b) {
    histogram.sample_count += counts[b];
    if (b < bounds.size()) histogram.bucket.push_back({histogram.sample_count, bounds[b]});
  }
  histogram.sample_sum = sum;
  return histogram;
}

class Families {
 public:
  using Label = std::pair<std::string, std::string>;  // name and value

  void counter(std::string name, std::string help, auto value) {
    begin(std::move(name), std::move(help), MetricType::Counter);
    add({}, value);
  }
  void gauge(std::string name, std::string help, auto value) {
    begin(std::move(name), std::move(help), MetricType::Gauge);
    add({}, value);
  }
  void begin(std::string name, std::string help, MetricType type) {
    all_.push_back({std::move(name), std::move(help), type, {}});
  }
  void add(const std::vector<Label>& labels, auto value) {
    prometheus::MetricFamily& family = all_.back();
    ClientMetric& metric = family.metric.emplace_back();
    for (const auto& [name, text] : labels) metric.label.push_back({name, text});
    (family.type == MetricType::Counter ? metric.counter.value : metric.gauge.value) =
        static_cast<double>(value);
  }
  void add(ClientMetric::Histogram histogram, const std::vector<Label>& labels = {}) {
    ClientMetric& metric = all_.back().metric.emplace_back();
    for (const auto& [name, text] : labels) metric.label.push_back({name, text});
    metric.histogram = std::move(histogram);
  }

  void add(prometheus::MetricFamily family) { all_.push_back(std::move(family)); }

  [[nodiscard]] const std::vector<prometheus::MetricFamily>& all() const { return all_; }
  [[nodiscard]] std::string text() const { return prometheus::TextSerializer().Serialize(all_); }

 private:
  std::vector<prometheus::MetricFamily> all_;
};

void add_goroutines(Families& out, const MetricsSnapshot& s) {
  out.begin("tuza_goroutines", "Goroutines, by state", MetricType::Gauge);
  out.add({{"state", "running"}}, s.goroutines.running);
  out.add({{"state", "runnable"}}, s.goroutines.runnable);
  out.add({{"state", "waiting"}}, s.goroutines.waiting);
  out.begin("tuza_goroutines_waiting", "Waiting goroutines, by reason", MetricType::Gauge);
  for (std::size_t i = 0; i < kWaitReasons; ++i) {
    if (s.goroutines.waiting_for[i] > 0) {
      out.add({{"reason", name(static_cast<WaitReason>(i))}}, s.goroutines.waiting_for[i]);
    }
  }
  out.counter("tuza_goroutines_started_total", "Goroutines started", s.sched.started);
  out.gauge("tuza_stacks", "Goroutine stacks, in use or cached", s.sched.stacks);
  out.gauge("tuza_stack_bytes", "Address space of goroutine stacks; only touched pages use memory",
            s.sched.stack_bytes);
}

void add_sched(Families& out, const SchedStats& s) {
  out.gauge("tuza_procs", "Processors (Ps)", s.max_procs);
  out.gauge("tuza_procs_idle", "Idle processors", s.procs_idle);
  out.gauge("tuza_threads", "Threads that run goroutines (Ms)", s.threads);
  out.gauge("tuza_threads_idle", "Threads (Ms) that are parked", s.threads_idle);
  out.gauge("tuza_lane_goroutines",
            "Goroutines that run without a processor: they block, compute, or are suspended", s.lane);
  out.gauge("tuza_lane_computing", "Goroutines without a processor that are computing", s.lane_computing);
  out.gauge("tuza_lane_suspended", "Goroutines without a processor that are suspended", s.lane_suspended);
  out.begin("tuza_global_queue_length", "Runnable goroutines in the global queue, by level",
            MetricType::Gauge);
  const char* const levels[] = {"woken", "new", "returned"};
  for (std::size_t i = 0; i < s.global_queue.size(); ++i) out.add({{"level", levels[i]}}, s.global_queue[i]);
  out.gauge("tuza_local_queue_length", "Runnable goroutines in the local queues", s.local_queues);
  out.counter("tuza_picks_total", "Goroutines chosen to run", s.picks);
  out.counter("tuza_handoffs_total", "Processors handed off from goroutines that kept them too long",
              s.handoffs);
  out.counter("tuza_handoffs_withdrawn_total", "Handoffs that were withdrawn", s.handoffs_withdrawn);
  out.counter("tuza_lane_arrivals_total", "Goroutines that continued without a processor", s.lane_arrivals);
  out.counter("tuza_suspend_signals_total", "Signals sent to suspend a thread", s.suspend_signals);
  out.counter("tuza_wakeups_total", "Idle threads (Ms) woken to search for work", s.wakeups);
  out.counter("tuza_sysmon_ticks_total", "Scans by sysmon", s.sysmon_ticks);
}

void add_process(Families& out, const ProcessStats& s) {
  // A value that cannot be read is left out: a zero would be believed.
  const auto gauge = [&out](const char* name, const char* help, const auto& value) {
    if (value) out.gauge(name, help, *value);
  };
  if (s.cpu_seconds)
    out.counter("process_cpu_seconds_total", "User and system CPU time spent", *s.cpu_seconds);
  gauge("process_resident_memory_bytes", "Resident memory", s.resident_bytes);
  gauge("process_virtual_memory_bytes", "Address space", s.virtual_bytes);
  gauge("process_open_fds", "Open file descriptors", s.open_fds);
  gauge("process_max_fds", "Maximum number of open file descriptors", s.max_fds);
  gauge("process_start_time_seconds", "Start time of the process, in seconds since 1970", s.start_seconds);
}

void add_requests(Families& out, const HttpCounts::Sum& http, const RouteCounts::Durations& durations) {
  out.begin("http_requests_total", "Requests by method and status class; none: no response was sent",
            MetricType::Counter);
  std::uint64_t ended = 0;
  for (int m = 0; m < http::kMethodCount; ++m) {
    const auto& by_class = http.requests[static_cast<std::size_t>(m)];
    const std::uint64_t of_method = std::reduce(by_class.begin(), by_class.end());
    if (of_method == 0) continue;
    ended += of_method;
    // Write the classes that are zero as well: if a counter first appears with the value 1, rate() cannot see the
    // increase.
    const std::string method(name(static_cast<http::Method>(m)));
    for (std::size_t c = 0; c < by_class.size(); ++c) {
      out.add({{"method", method}, {"code", HttpCounts::kClasses[c]}}, by_class[c]);
    }
  }
  out.begin("http_request_duration_seconds", "Time from the head of a request to the end of its handler",
            MetricType::Histogram);
  out.add(histogram_of(durations.buckets, HttpCounts::kBoundsSeconds,
                       static_cast<double>(durations.duration_ns) * 1e-9));
  out.counter("http_response_bytes_total", "Bytes of response bodies", http.response_bytes);
  out.gauge("http_requests_in_flight", "Requests whose handler is running",
            http.begun - std::min(http.begun, ended));
}

void add_routes(Families& out, const std::vector<RouteCounts::Sum>& routes) {
  if (routes.empty()) return;
  out.begin("http_route_requests_total", "Requests by the pattern of their route and by status class",
            MetricType::Counter);
  for (const RouteCounts::Sum& route : routes) {
    for (std::size_t c = 0; c < route.requests.size(); ++c) {
      out.add({{"pattern", route.pattern}, {"code", HttpCounts::kClasses[c]}}, route.requests[c]);
    }
  }
  out.begin("http_route_duration_seconds", "The same as http_request_duration_seconds, by pattern",
            MetricType::Histogram);
  for (const RouteCounts::Sum& route : routes) {
    out.add(histogram_of(route.buckets, HttpCounts::kBoundsSeconds,
                         static_cast<double>(route.duration_ns) * 1e-9),
            {{"pattern", route.pattern}});
  }
}

void add_servers(Families& out, const http::ServerStats& s) {
  out.counter("http_connections_accepted_total", "Connections accepted", s.accepted);
  out.gauge("http_connections_open", "Open connections", s.open);
  out.begin("http_connections_refused_total", "Connections closed before their first request, by reason",
            MetricType::Counter);
  out.add({{"reason", "address"}}, s.connections.over_address_max);
  out.add({{"reason", "not_from_proxy"}}, s.connections.not_from_proxy);
  out.add({{"reason", "proxy_header"}}, s.connections.bad_proxy_headers);
  out.add({{"reason", "memory"}}, s.connections.no_memory);
  out.counter("http_connections_made_room_total",
              "Idle connections closed for new ones at http.max_connections", s.connections.made_room);
  out.begin("http_requests_refused_total", "Requests that the server itself refused, by status",
            MetricType::Counter);
  for (std::size_t i = 0; i < http::kRefusedStatuses.size(); ++i) {
    out.add({{"code", std::to_string(http::kRefusedStatuses[i])}}, s.refused[i]);
  }
  out.gauge("http_bodies_bytes", "Size of the request bodies that handlers hold as a whole", s.bodies_bytes);
  out.begin("http_timeouts_total", "Connections closed because the client was too slow, by phase",
            MetricType::Counter);
  out.add({{"phase", "idle"}}, s.idle_timeouts);
  out.add({{"phase", "header"}}, s.header_timeouts);
  out.add({{"phase", "body"}}, s.body_timeouts);
  out.add({{"phase", "write"}}, s.write_timeouts);
  out.add({{"phase", "handshake"}}, s.handshake_timeouts);
  out.counter("http_tls_failures_total", "Connections closed because TLS failed", s.tls_failures);
  out.counter("http_handler_exceptions_total", "Exceptions that left a handler", s.handlers_thrown);
}

void add_upstreams(Families& out, const std::vector<Metrics::Upstream>& upstreams) {
  if (upstreams.empty()) return;
  const auto family = [&](const char* name, const char* help, MetricType type, auto value_of) {
    out.begin(name, help, type);
    for (const auto& [proxy, stats] : upstreams)
      out.add({{"proxy", proxy}, {"upstream", stats.name}}, value_of(stats));
  };
  using Stats = http::UpstreamStats;
  const MetricType counter = MetricType::Counter, gauge = MetricType::Gauge;
  family("proxy_upstream_requests_total", "Requests to an upstream, repeated ones included", counter,
         [](const Stats& s) { return s.requests; });
  family("proxy_upstream_failures_total", "Requests to an upstream without a whole answer", counter,
         [](const Stats& s) { return s.failures; });
  family("proxy_upstream_requests_in_flight", "Requests to an upstream in progress", gauge,
         [](const Stats& s) { return s.active; });
  family("proxy_upstream_up", "0 while an upstream is left out after failures, or unhealthy by its checks",
         gauge, [](const Stats& s) { return s.left_out || s.unhealthy ? 0 : 1; });
  family("proxy_upstream_checks_total", "Health checks of an upstream", counter,
         [](const Stats& s) { return s.checks; });
  family("proxy_upstream_checks_failed_total", "Health checks of an upstream that failed", counter,
         [](const Stats& s) { return s.checks_failed; });
  family("proxy_upstream_connections_dialled_total", "Connections made to an upstream for requests", counter,
         [](const Stats& s) { return s.client.dialled; });
  out.begin("proxy_upstream_connections", "Open connections to an upstream, by state", gauge);
  for (const auto& [proxy, stats] : upstreams) {
    out.add({{"proxy", proxy}, {"upstream", stats.name}, {"state", "idle"}}, stats.client.idle);
    out.add({{"proxy", proxy}, {"upstream", stats.name}, {"state", "busy"}}, stats.client.busy());
  }
}

void add_pools(Families& out, const std::map<std::string, ResourceStats>& pools) {
  if (pools.empty()) return;
  const auto family = [&](const char* name, const char* help, MetricType type, auto value_of) {
    out.begin(name, help, type);
    for (const auto& [pool, stats] : pools) out.add({{"pool", pool}}, value_of(stats));
  };
  using Stats = ResourceStats;
  out.begin("resource_pool_open", "Open resources of a pool, by state", MetricType::Gauge);
  for (const auto& [pool, stats] : pools) {
    out.add({{"pool", pool}, {"state", "idle"}}, stats.idle);
    out.add({{"pool", pool}, {"state", "busy"}}, stats.in_use);
  }
  family("resource_pool_waiting", "Calls that wait for a place in a pool", MetricType::Gauge,
         [](const Stats& s) { return s.waiting; });
  family("resource_pool_waits_total", "Calls that found no place in a pool", MetricType::Counter,
         [](const Stats& s) { return s.waited; });
  family("resource_pool_wait_seconds_total", "Time that calls have waited for a place in a pool",
         MetricType::Counter,
         [](const Stats& s) { return std::chrono::duration<double>(s.wait_time).count(); });
  family("resource_pool_opened_total", "Resources that a pool has opened", MetricType::Counter,
         [](const Stats& s) { return s.opened; });
  family("resource_pool_open_failures_total", "Resources that a pool could not open", MetricType::Counter,
         [](const Stats& s) { return s.open_failed; });
  out.begin("resource_pool_closed_total", "Resources that a pool has closed, by reason", MetricType::Counter);
  for (const auto& [pool, stats] : pools) {
    const auto closed = [&](const char* reason, std::uint64_t number) {
      out.add({{"pool", pool}, {"reason", reason}}, number);
    };
    closed("idle_timeout", stats.closed_idle_timeout);
    closed("idle_max", stats.closed_idle_max);
    closed("life", stats.closed_life);
    closed("check", stats.closed_check);
    closed("broken", stats.closed_broken);
    closed("end", stats.closed_at_end);
  }
}

void add_clients(Families& out, const std::map<std::string, http::ClientStats>& clients) {
  if (clients.empty()) return;
  using Stats = http::ClientStats;
  const auto family = [&](const char* name, const char* help, MetricType type, auto value_of) {
    out.begin(name, help, type);
    for (const auto& [client, stats] : clients) out.add({{"client", client}}, value_of(stats));
  };
  out.begin("http_client_connections", "Open connections of a client, by state", MetricType::Gauge);
  for (const auto& [client, stats] : clients) {
    out.add({{"client", client}, {"state", "idle"}}, stats.idle);
    out.add({{"client", client}, {"state", "busy"}}, stats.busy());
  }
  family("http_client_waiting", "Calls that wait for a connection of a client", MetricType::Gauge,
         [](const Stats& s) { return s.waiting; });
  family("http_client_connections_dialled_total", "Connections that a client has made", MetricType::Counter,
         [](const Stats& s) { return s.dialled; });
  family("http_client_sent_total",
         "Requests that a client has sent, those of redirects and repetitions included", MetricType::Counter,
         [](const Stats& s) { return s.requests; });
  family("http_client_repeated_total", "Requests sent again because a kept connection was gone",
         MetricType::Counter, [](const Stats& s) { return s.repeated; });
}

prometheus::MetricFamily converted(const OwnFamily& own) {
  const MetricDeclaration& declared = own.declaration;
  prometheus::MetricFamily family{
      .name = declared.name, .help = declared.help, .type = type_of(declared.kind), .metric = {}};
  for (const OwnFamily::Series& series : own.series) {
    ClientMetric& metric = family.metric.emplace_back();
    for (std::size_t i = 0; i < series.values.size(); ++i) {
      metric.label.push_back({declared.labels[i], series.values[i]});
    }
    switch (declared.kind) {
      case MetricKind::kCounter: metric.counter.value = series.value; break;
      case MetricKind::kGauge: metric.gauge.value = series.value; break;
      case MetricKind::kHistogram:
        metric.histogram = histogram_of(series.counts, declared.bounds, series.value);
        break;
    }
  }
  return family;
}

Families families(const MetricsSnapshot& snapshot) {
  Families out;
  add_goroutines(out, snapshot);
  add_sched(out, snapshot.sched);
  add_process(out, snapshot.process);
  add_requests(out, snapshot.http, RouteCounts::total(snapshot.routes));
  add_routes(out, snapshot.routes);
  add_servers(out, snapshot.servers);
  add_upstreams(out, snapshot.connections.upstreams);
  add_pools(out, snapshot.connections.pools);
  add_clients(out, snapshot.connections.clients);
  if (snapshot.log_lines_dropped) {
    out.counter("log_lines_dropped_total",
                "Log lines dropped because the queue was full or the output refused them",
                *snapshot.log_lines_dropped);
  }
  for (const OwnFamily& own : snapshot.own) out.add(converted(own));
  return out;
}

}  // namespace

std::string prometheus_text(const MetricsSnapshot& snapshot) { return families(snapshot).text(); }

std::set<std::string> names_of_tuzas_lines() {
  MetricsSnapshot snapshot;
  snapshot.log_lines_dropped = 0;
  snapshot.routes.emplace_back();
  snapshot.connections.upstreams.emplace_back();
  snapshot.connections.pools[""];
  snapshot.connections.clients[""];
  std::set<std::string> names;
  const Families tuzas = families(snapshot);
  for (const prometheus::MetricFamily& family : tuzas.all()) {
    names.insert(family.name);
    if (family.type != MetricType::Histogram) continue;
    for (const char* line : {"_bucket", "_sum", "_count"}) names.insert(family.name + line);
  }
  return names;
}

}  // namespace tuza
