#include <tuza/framework/metrics.h>

#include <tuza/framework/log/current.h>
#include <tuza/framework/log/request_line.h>
#include <tuza/framework/metrics/http_counts.h>
#include <tuza/framework/metrics/prometheus_text.h>
#include <tuza/sched/rt/base/clock.h>

#include <algorithm>
#include <utility>

namespace tuza {

Metrics::Metrics() : http_(std::make_shared<HttpCounts>()) {}
Metrics::~Metrics() = default;

http::Middleware Metrics::middleware(bool access_log) {
  return [counts = http_, access_log](http::Handler next) -> http::Handler {
    return
        [counts, access_log, next = std::move(next)](http::Request& request, http::ResponseWriter& response) {
          counts->begin();
          const std::int64_t begun = rt::now_ns();
          http::observe(next, request, response, [&](int status) {
            const std::int64_t ended = rt::now_ns();
            counts->end(request.method(), status, ended - begun, response.bytes_written());
            if (access_log && logging::wants(LogLevel::kInfo)) {
              logging::log_request(request, response, status, begun, ended);
            }
          });
        };
  };
}

void Metrics::add_server(std::function<http::ServerStats()> stats) { servers_.push_back(std::move(stats)); }

void Metrics::set_log_lines_dropped(std::function<std::uint64_t()> dropped) {
  log_lines_dropped_ = std::move(dropped);
}

http::ServerStats Metrics::all_servers() const {
  http::ServerStats sum;
  for (const auto& ask : servers_) {
    const http::ServerStats one = ask();
    sum.accepted += one.accepted;
    sum.open += one.open;
    for (std::size_t i = 0; i < sum.refused.size(); ++i) sum.refused[i] += one.refused[i];
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

std::string Metrics::prometheus_text() const {
  MetricsSnapshot snapshot;
  snapshot.sched = sched_stats();
  snapshot.goroutines = count_goroutines();
  snapshot.process = process_stats();
  snapshot.http = http_->sum();
  snapshot.servers = all_servers();
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
  result.duration_ns = sum.duration_ns;
  result.servers = all_servers();
  return result;
}

}  // namespace tuza
