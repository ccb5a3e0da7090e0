#include <tuza/framework/metrics/route_counts.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <new>
#include <utility>

namespace tuza {

struct RouteCounts::Route {
  explicit Route(std::string_view text) : pattern(text) {}

  struct Numbers {
    std::array<std::atomic<std::uint64_t>, HttpCounts::kClasses.size()> requests{};
    std::array<std::atomic<std::uint64_t>, HttpCounts::kBoundsSeconds.size() + 1> buckets{};
    std::atomic<std::uint64_t> duration_ns{0};
  };
  const std::string pattern;
  PerP<Numbers> numbers;
};

RouteCounts::RouteCounts() : others_(std::make_unique<Route>(kOtherPatterns)) {}
RouteCounts::~RouteCounts() {
  for (std::atomic<Route*>& place : places_) delete place.load(std::memory_order_relaxed);
}

// The release of the exchange makes a whole Route visible to the acquire here. A place that has been filled never changes, so
// the first place from the hash's on that is empty is where every thread would put the pattern, and only one succeeds.
// There are twice as many places as routes, so there is always an empty one.
RouteCounts::Route* RouteCounts::find(std::string_view pattern) try {
  for (std::size_t i = std::hash<std::string_view>()(pattern);; ++i) {
    std::atomic<Route*>& place = places_[i % kPlaces];
    Route* route = place.load(std::memory_order_acquire);
    if (route == nullptr) {
      if (routes_.load(std::memory_order_relaxed) >= kRoutesMax) break;
      auto made = std::make_unique<Route>(pattern);
      const bool room = routes_.fetch_add(1, std::memory_order_relaxed) < kRoutesMax;
      if (room && place.compare_exchange_strong(route, made.get(), std::memory_order_acq_rel,
                                                std::memory_order_acquire)) {
        route = made.release();
      } else {  // there is no room, or another thread has put one there
        routes_.fetch_sub(1, std::memory_order_relaxed);
      }
      if (!room) break;
    }
    if (route->pattern == pattern) return route;
  }
  return others_.get();
} catch (const std::bad_alloc&) {
  return others_.get();
}

void RouteCounts::add(std::string_view pattern, int status, std::int64_t duration_ns) {
  Route::Numbers& mine = find(pattern.empty() ? kNoPattern : pattern)->numbers.mine();
  mine.requests[HttpCounts::class_of(status)].fetch_add(1, std::memory_order_relaxed);
  mine.buckets[HttpCounts::bucket_of(duration_ns)].fetch_add(1, std::memory_order_relaxed);
  mine.duration_ns.fetch_add(static_cast<std::uint64_t>(duration_ns), std::memory_order_relaxed);
}

std::vector<RouteCounts::Sum> RouteCounts::sums() const {
  std::vector<Sum> all;
  const auto add = [&all](const Route* route) {
    Sum& sum = all.emplace_back();
    sum.pattern = route->pattern;
    for (const Route::Numbers& part : route->numbers) {
      for (std::size_t c = 0; c < sum.requests.size(); ++c) sum.requests[c] += part.requests[c];
      for (std::size_t b = 0; b < sum.buckets.size(); ++b) sum.buckets[b] += part.buckets[b];
      sum.duration_ns += part.duration_ns;
    }
  };
  for (const std::atomic<Route*>& place : places_) {
    if (const Route* const route = place.load(std::memory_order_acquire)) add(route);
  }
  add(others_.get());
  if (std::ranges::all_of(all.back().requests, [](std::uint64_t n) { return n == 0; })) all.pop_back();
  std::ranges::sort(all, {}, &Sum::pattern);
  return all;
}

RouteCounts::Durations RouteCounts::total(const std::vector<Sum>& sums) {
  Durations total;
  for (const Sum& sum : sums) {
    for (std::size_t b = 0; b < total.buckets.size(); ++b) total.buckets[b] += sum.buckets[b];
    total.duration_ns += sum.duration_ns;
  }
  return total;
}

}  // namespace tuza
