// The numbers behind the handles of framework/metric.h: one series is one line of /metrics, or one histogram.
//
// All accesses are relaxed: no number is used to draw conclusions about another, and a scrape that reads between two
// updates is off by one observation. A series has cache lines of its own, so that those of one family do not slow each
// other down.
//
// Thread-safe.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::detail {

// fetch_add() for floating-point numbers, which not every standard library has yet.
inline void add_to(std::atomic<double>& sum, double n) {
  double seen = sum.load(std::memory_order_relaxed);
  while (!sum.compare_exchange_weak(seen, seen + n, std::memory_order_relaxed)) {
  }
}

struct alignas(64) CounterSeries {
  std::atomic<std::uint64_t> whole{0};
  std::atomic<double> fraction{0};  // the sum of what was added as floating-point numbers

  [[nodiscard]] double sum() const {
    return static_cast<double>(whole.load(std::memory_order_relaxed)) +
           fraction.load(std::memory_order_relaxed);
  }
};

struct alignas(64) GaugeSeries {
  std::atomic<double> value{0};
};

class alignas(64) HistogramSeries {
 public:
  explicit HistogramSeries(std::vector<double> bounds)
      : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

  // A bound belongs to its bucket; NaN counts as greater than all bounds.
  void observe(double value) {
    std::size_t bucket = 0;
    while (bucket < bounds_.size() && !(value <= bounds_[bucket])) ++bucket;
    counts_[bucket].fetch_add(1, std::memory_order_relaxed);
    add_to(sum_, value);
  }

  // Each observation is counted in one bucket; the last bucket has no bound.
  [[nodiscard]] std::vector<std::uint64_t> counts() const {
    std::vector<std::uint64_t> result;
    result.reserve(counts_.size());
    for (const auto& count : counts_) result.push_back(count.load(std::memory_order_relaxed));
    return result;
  }
  [[nodiscard]] double sum() const { return sum_.load(std::memory_order_relaxed); }

 private:
  const std::vector<double> bounds_;
  std::vector<std::atomic<std::uint64_t>> counts_;
  std::atomic<double> sum_{0};
};

// A family, as its handles see it.
class SeriesSource {
 public:
  virtual ~SeriesSource() = default;
  virtual std::shared_ptr<void> series(std::span<const std::string_view> values) = 0;
};

}  // namespace tuza::detail
