// Counters for requests by the pattern of their route, with a histogram of durations for each.
//
// Patterns are found in a hash table by their text, not by its address: a router may be gone and another one have its
// memory. Entries are added at the first request and never removed, so a lookup takes no lock: it reads the entries from
// the hash's place on, until the pattern or an empty place. Paths are never labels: clients choose them, and each would
// be a series that Prometheus keeps.
//
// Thread-safe. Nothing parks.
#pragma once

#include <tuza/framework/metrics/http_counts.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tuza {

class RouteCounts {
 public:
  // Further patterns are counted together.
  static constexpr std::size_t kRoutesMax = 512;
  static constexpr std::string_view kNoPattern = "(none)", kOtherPatterns = "(others)";

  RouteCounts();
  RouteCounts(const RouteCounts&) = delete;
  RouteCounts& operator=(const RouteCounts&) = delete;
  ~RouteCounts();

  // Of each request exactly once, so that the sum over all patterns is that of all requests. `pattern`: empty if no router
  // has chosen the handler.
  void add(std::string_view pattern, int status, std::int64_t duration_ns);

  struct Durations {
    std::array<std::uint64_t, HttpCounts::kBoundsSeconds.size() + 1> buckets{};
    std::uint64_t duration_ns = 0;
  };
  struct Sum : Durations {
    std::string pattern;
    std::array<std::uint64_t, HttpCounts::kClasses.size()> requests{};
  };
  // Of the patterns that have had requests, in the order of their text.
  [[nodiscard]] std::vector<Sum> sums() const;
  // Of all requests.
  [[nodiscard]] static Durations total(const std::vector<Sum>& sums);

 private:
  struct Route;
  static constexpr std::size_t kPlaces = 2 * kRoutesMax;

  Route* find(std::string_view pattern);

  std::array<std::atomic<Route*>, kPlaces> places_{};
  std::atomic<std::size_t> routes_{0};
  const std::unique_ptr<Route> others_;  // and where there was no memory for another
};

}  // namespace tuza
