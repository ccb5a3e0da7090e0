// Converts a snapshot of all metrics to the text format of Prometheus.
#pragma once

#include <tuza/framework/metrics.h>
#include <tuza/framework/metrics/http_counts.h>
#include <tuza/framework/metrics/own_metrics.h>
#include <tuza/framework/metrics/process_stats.h>
#include <tuza/framework/metrics/route_counts.h>
#include <tuza/http/server_stats.h>
#include <tuza/sched/stats.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tuza {

struct MetricsSnapshot {
  SchedStats sched;
  GoroutineCounts goroutines;
  ProcessStats process;
  HttpCounts::Sum http;
  std::vector<RouteCounts::Sum> routes;
  http::ServerStats servers;
  Metrics::Connections connections;
  std::optional<std::uint64_t> log_lines_dropped;
  std::vector<OwnFamily> own;
};

std::string prometheus_text(const MetricsSnapshot& snapshot);
// The names of the lines of Tuza's own metrics, whether or not they are there at the moment.
std::set<std::string> names_of_tuzas_lines();

}  // namespace tuza
