#include <tuza/framework/metrics/own_metrics.h>

#include <tuza/framework/log/utf8.h>
#include <tuza/framework/metrics/prometheus_text.h>
#include <tuza/sched/detail/lock_guard.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <utility>

namespace tuza {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  throw std::invalid_argument("metric \"" + name + "\": " + why);
}

// As Prometheus demands. `colon`: allowed in names of metrics, not of labels.
bool is_name(std::string_view text, bool colon) {
  const auto letter = [colon](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (colon && c == ':');
  };
  if (text.empty() || !letter(text.front())) return false;
  return std::ranges::all_of(text, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

std::string_view text_of(MetricKind kind) {
  return kind == MetricKind::kCounter ? "counter" : kind == MetricKind::kGauge ? "gauge" : "histogram";
}

std::string text_of(const std::vector<std::string>& labels) {
  std::string text;
  for (const std::string& label : labels) text.append(text.empty() ? "" : ", ").append(label);
  return "{" + text + "}";
}

// The names of the lines that a family writes.
std::vector<std::string> lines_of(const MetricDeclaration& declared) {
  if (declared.kind != MetricKind::kHistogram) return {declared.name};
  return {declared.name, declared.name + "_bucket", declared.name + "_sum", declared.name + "_count"};
}

void check_labels(const MetricDeclaration& declared) {
  std::set<std::string_view> seen;
  for (const std::string& label : declared.labels) {
    if (!is_name(label, false) || label.starts_with("__")) {
      refuse(declared.name,
             "the label \"" + label +
                 "\" is not a name: letters, digits and \"_\", no digit first, not \"__\" first");
    }
    if (label == "le" && declared.kind == MetricKind::kHistogram) {
      refuse(declared.name, "the label \"le\" is that of the buckets");
    }
    if (!seen.insert(label).second) refuse(declared.name, "the label \"" + label + "\" is there twice");
  }
}

void check_bounds(const MetricDeclaration& declared) {
  if (declared.kind != MetricKind::kHistogram) return;
  const std::vector<double>& bounds = declared.bounds;
  const bool ascend = std::ranges::adjacent_find(bounds, std::ranges::greater_equal()) == bounds.end();
  if (bounds.empty() || !ascend || !std::ranges::all_of(bounds, [](double b) { return std::isfinite(b); })) {
    refuse(declared.name, "the bounds of a histogram's buckets are finite numbers that ascend, at least one");
  }
}

void check(const MetricDeclaration& declared) {
  static const std::set<std::string> tuzas = names_of_tuzas_lines();
  if (!is_name(declared.name, true)) {
    refuse(declared.name,
           R"(a name consists of letters, digits, "_" and ":", and does not begin with a digit)");
  }
  for (const std::string& line : lines_of(declared)) {
    if (line.starts_with("tuza_") || line.starts_with("process_") || tuzas.contains(line)) {
      refuse(declared.name, "Tuza itself has a metric " + line + ", or reserves its name");
    }
  }
  check_labels(declared);
  check_bounds(declared);
}

}  // namespace

class OwnMetrics::Family final : public detail::SeriesSource {
 public:
  explicit Family(MetricDeclaration declared) : declared_(std::move(declared)) {}

  [[nodiscard]] const MetricDeclaration& declared() const { return declared_; }

  std::shared_ptr<void> series(std::span<const std::string_view> values) override {
    if (values.size() != declared_.labels.size()) {
      refuse(declared_.name, "it has the labels " + text_of(declared_.labels) + ", and got " +
                                 std::to_string(values.size()) + " values");
    }
    std::vector<std::string> key;
    for (const std::string_view value : values) key.push_back(valid_utf8(value));
    const LockGuard lock(mutex_);
    std::shared_ptr<void>& found = series_[std::move(key)];
    if (found == nullptr) found = make();
    return found;
  }

  [[nodiscard]] OwnFamily snapshot() const {
    OwnFamily result{.declaration = declared_, .series = {}};
    const LockGuard lock(mutex_);
    for (const auto& [values, series] : series_) result.series.push_back(numbers(values, series.get()));
    return result;
  }

 private:
  [[nodiscard]] std::shared_ptr<void> make() const {
    switch (declared_.kind) {
      case MetricKind::kCounter: return std::make_shared<detail::CounterSeries>();
      case MetricKind::kGauge: return std::make_shared<detail::GaugeSeries>();
      case MetricKind::kHistogram: return std::make_shared<detail::HistogramSeries>(declared_.bounds);
    }
    return nullptr;
  }

  [[nodiscard]] OwnFamily::Series numbers(const std::vector<std::string>& values, const void* series) const {
    OwnFamily::Series result{.values = values, .value = 0, .counts = {}};
    switch (declared_.kind) {
      case MetricKind::kCounter:
        result.value = static_cast<const detail::CounterSeries*>(series)->sum();
        break;
      case MetricKind::kGauge:
        result.value = static_cast<const detail::GaugeSeries*>(series)->value.load(std::memory_order_relaxed);
        break;
      case MetricKind::kHistogram: {
        const auto* histogram = static_cast<const detail::HistogramSeries*>(series);
        result.value = histogram->sum();
        result.counts = histogram->counts();
        break;
      }
    }
    return result;
  }

  const MetricDeclaration declared_;
  mutable Mutex mutex_;
  std::map<std::vector<std::string>, std::shared_ptr<void>> series_ TUZA_GUARDED_BY(mutex_);
};

std::shared_ptr<detail::SeriesSource> OwnMetrics::declare(MetricDeclaration declared) {
  check(declared);
  declared.help = valid_utf8(declared.help);
  const LockGuard lock(mutex_);
  if (const auto same = families_.find(declared.name); same != families_.end()) {
    const MetricDeclaration& first = same->second->declared();
    if (first.kind != declared.kind) {
      refuse(declared.name, "it is a " + std::string(text_of(first.kind)) + " already, not a " +
                                std::string(text_of(declared.kind)));
    }
    if (first.labels != declared.labels) {
      refuse(declared.name,
             "it has the labels " + text_of(first.labels) + " already, not " + text_of(declared.labels));
    }
    if (first.bounds != declared.bounds) refuse(declared.name, "it has other buckets already");
    return same->second;
  }
  const std::vector<std::string> lines = lines_of(declared);
  for (const std::string& line : lines) {
    if (const auto other = lines_.find(line); other != lines_.end()) {
      refuse(declared.name,
             "its line " + line + " would be one of the metric \"" + other->second + "\", too");
    }
  }
  const auto family = std::make_shared<Family>(std::move(declared));
  for (const std::string& line : lines) lines_.emplace(line, family->declared().name);
  families_.emplace(family->declared().name, family);
  return family;
}

std::vector<OwnFamily> OwnMetrics::snapshot() const {
  std::vector<OwnFamily> all;
  const LockGuard lock(mutex_);
  all.reserve(families_.size());
  for (const auto& [name, family] : families_) all.push_back(family->snapshot());
  return all;
}

}  // namespace tuza
