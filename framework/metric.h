// Public header.
//
// A program's own metrics: counters, gauges and histograms, made by framework/metrics.h.
//
//     auto& metrics = app.metrics();
//     const tuza::Counter orders = metrics.counter("orders_total", "Orders accepted");
//     const auto paid = metrics.counter("payments_total", "Payments by method", {"method"});   // a family
//     const tuza::Counter by_card = paid.with("card");
//     orders.add();
//     by_card.add();
//
// Counter, Gauge and Histogram are handles: small, copied freely, and valid for as long as they exist. Make a handle once
// and keep it, in the capture of a handler for instance: an addition is then a relaxed atomic operation or two, while
// with() searches under a lock.
//
// Thread-safe, like the metrics themselves. Additions neither park nor block, and work outside tuza::run, too.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/framework/detail/metric_series.h>

#include <array>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tuza {

class Metrics;

template <class T>
concept MetricNumber = std::is_arithmetic_v<T> && !std::same_as<T, bool>;

// A number that only grows, from zero at the start of the process.
class Counter {
 public:
  void add() const { series_->whole.fetch_add(1, std::memory_order_relaxed); }
  // Throws std::invalid_argument if `n` is negative or not a number.
  template <MetricNumber N>
  void add(N n) const {
    if constexpr (!std::unsigned_integral<N>) {
      if (!(n >= 0)) throw std::invalid_argument("a counter cannot decrease");
    }
    if constexpr (std::integral<N>) {
      series_->whole.fetch_add(static_cast<std::uint64_t>(n), std::memory_order_relaxed);
    } else {
      detail::add_to(series_->fraction, static_cast<double>(n));
    }
  }
  [[nodiscard]] double value() const { return series_->sum(); }

 private:
  using Series = detail::CounterSeries;
  template <class Handle>
  friend class MetricFamily;
  explicit Counter(std::shared_ptr<Series> series) : series_(std::move(series)) {}
  std::shared_ptr<Series> series_;
};

// A number that goes up and down.
class Gauge {
 public:
  void set(double value) const { series_->value.store(value, std::memory_order_relaxed); }
  void add(double n = 1) const { detail::add_to(series_->value, n); }
  void subtract(double n = 1) const { add(-n); }
  [[nodiscard]] double value() const { return series_->value.load(std::memory_order_relaxed); }

 private:
  using Series = detail::GaugeSeries;
  template <class Handle>
  friend class MetricFamily;
  explicit Gauge(std::shared_ptr<Series> series) : series_(std::move(series)) {}
  std::shared_ptr<Series> series_;
};

// How many observations fell into each of its buckets, and their sum.
class Histogram {
 public:
  void observe(double value) const { series_->observe(value); }
  // In seconds, the unit of Prometheus.
  template <class Rep, class Period>
  void observe(std::chrono::duration<Rep, Period> time) const {
    observe(std::chrono::duration<double>(time).count());
  }

 private:
  using Series = detail::HistogramSeries;
  template <class Handle>
  friend class MetricFamily;
  explicit Histogram(std::shared_ptr<Series> series) : series_(std::move(series)) {}
  std::shared_ptr<Series> series_;
};

// Metrics of one name that differ in the values of their labels.
template <class Handle>
class MetricFamily {
 public:
  // The metric with these values, in the order of the labels; it is made, and shown with its initial value, the first time.
  // Bytes that are not UTF-8 become U+FFFD. Every combination takes memory until the end of the process, so values that
  // clients choose freely do not belong here. Throws std::invalid_argument if there are more or fewer values than
  // labels. May park.
  template <std::convertible_to<std::string_view>... Values>
  [[nodiscard]] Handle with(const Values&... values) const {
    const std::array<std::string_view, sizeof...(Values)> all{std::string_view(values)...};
    return Handle(std::static_pointer_cast<typename Handle::Series>(family_->series(all)));
  }

 private:
  friend class Metrics;
  explicit MetricFamily(std::shared_ptr<detail::SeriesSource> family) : family_(std::move(family)) {}
  std::shared_ptr<detail::SeriesSource> family_;
};

}  // namespace tuza
