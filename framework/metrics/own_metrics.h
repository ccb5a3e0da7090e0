// The metrics that the program itself has declared (framework/metric.h): names, labels and series.
//
// Thread-safe. All functions may park.
#pragma once

#include <tuza/framework/detail/metric_series.h>
#include <tuza/sched/sync/mutex.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tuza {

enum class MetricKind : std::uint8_t { kCounter, kGauge, kHistogram };

struct MetricDeclaration {
  std::string name, help;
  MetricKind kind = MetricKind::kCounter;
  std::vector<std::string> labels = {};
  std::vector<double> bounds = {};  // of a histogram's buckets, ascending; one further bucket has none
};

// A family with its numbers at one moment.
struct OwnFamily {
  struct Series {
    std::vector<std::string> values;    // of the labels
    double value = 0;                   // of a histogram: the sum of the observations
    std::vector<std::uint64_t> counts;  // of a histogram: observations per bucket
  };
  MetricDeclaration declaration;
  std::vector<Series> series;
};

class OwnMetrics {
 public:
  // Declares a family, or finds the one that was declared in the same way; `help` is that of the first declaration. Throws
  // std::invalid_argument, naming the metric, if the declaration is malformed, or its name is taken.
  std::shared_ptr<detail::SeriesSource> declare(MetricDeclaration declaration);
  // All families, ordered by name.
  [[nodiscard]] std::vector<OwnFamily> snapshot() const;

 private:
  class Family;

  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<Family>> families_ TUZA_GUARDED_BY(mutex_);
  // The family that writes a line of this name: those of a histogram have names of their own.
  std::map<std::string, std::string> lines_ TUZA_GUARDED_BY(mutex_);
};

}  // namespace tuza
