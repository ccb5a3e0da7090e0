// Counters for requests by method and status class, and for their durations: the middleware adds to them, and a
// scrape reads them.
//
// A request adds to the counters of its current P (sched/per_p.h). All accesses are relaxed: no counter is used to draw
// conclusions about another, and a scrape that reads between two updates is off by one request. prometheus-cpp's own
// counters and histograms would need a lookup and a lock for each request.
//
// Thread-safe.
#pragma once

#include <tuza/http/method.h>
#include <tuza/sched/per_p.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tuza {

class HttpCounts {
 public:
  // Upper bounds of the histogram's buckets; one further bucket has no bound.
  static constexpr std::array<double, 15> kBoundsSeconds{
      0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10};
  // 2xx to 5xx; the first class is for requests without a response.
  static constexpr std::array<const char*, 5> kClasses{"none", "2xx", "3xx", "4xx", "5xx"};

  template <class Number>
  struct Numbers {
    std::array<std::array<Number, kClasses.size()>, http::kMethodCount> requests{};
    Number response_bytes{}, begun{};
  };
  using Sum = Numbers<std::uint64_t>;

  void begin();
  // `status`: as reported by http::observe().
  void end(http::Method method, int status, std::uint64_t response_bytes);
  // The sum over all Ps.
  [[nodiscard]] Sum sum() const;

  static std::size_t bucket_of(std::int64_t duration_ns);
  static std::size_t class_of(int status);

 private:
  PerP<Numbers<std::atomic<std::uint64_t>>> numbers_;
};

}  // namespace tuza
