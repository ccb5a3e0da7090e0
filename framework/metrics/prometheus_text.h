// Converts a snapshot of all metrics to the text format of Prometheus.
#pragma once

#include <tuza/framework/metrics/http_counts.h>
#include <tuza/framework/metrics/process_stats.h>
#include <tuza/http/server_stats.h>
#include <tuza/sched/stats.h>

#include <optional>
#include <string>

namespace tuza {

struct MetricsSnapshot {
  SchedStats sched;
  GoroutineCounts goroutines;
  ProcessStats process;
  HttpCounts::Sum http;
  http::ServerStats servers;
  std::optional<std::uint64_t> log_lines_dropped;
};

std::string prometheus_text(const MetricsSnapshot& snapshot);

}  // namespace tuza
