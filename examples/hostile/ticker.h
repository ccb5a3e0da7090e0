// Measures the lateness of a goroutine that should run every millisecond.
//
// Ticks that were due while the goroutine could not run count too, each with its own lateness: a pause of 100 ms is not
// one late tick but a hundred, of 100 ms, 99 ms, ... Otherwise long pauses would be underrepresented.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace hostile {

// A histogram of nanoseconds, accurate to 1.6 %. One thread adds; any thread reads. Thread-safe.
class Histogram {
 public:
  void add(std::uint64_t ns, std::uint64_t times = 1);
  // Replaces the contents with those of `from`, and empties `from` if `clear`.
  void take(Histogram& from, bool clear);
  [[nodiscard]] std::uint64_t count() const;
  [[nodiscard]] std::uint64_t max() const;
  // The smallest value that `share` (0 to 1) of the counted values do not exceed; 0 if nothing has been counted.
  [[nodiscard]] std::uint64_t percentile(double share) const;

 private:
  static constexpr unsigned kBits = 6;
  static constexpr std::size_t kBuckets = (64 - kBits + 1) << kBits;
  static std::size_t bucket(std::uint64_t ns);
  static std::uint64_t highest(std::size_t bucket);

  std::array<std::atomic<std::uint64_t>, kBuckets> counts_{};
  std::atomic<std::uint64_t> max_{0};
};

class Ticker {
 public:
  // Runs forever. Parks.
  [[noreturn]] void run();
  // {"count":...,"p50_us":...,"p99_us":...,"p999_us":...,"max_us":...} since the last reset. Includes ticks that are
  // due but have not happened yet, with their lateness so far. A call with `reset` does not include them, because the
  // next window will count them.
  std::string json(bool reset);

 private:
  static constexpr std::int64_t kPeriodNs = 1'000'000;
  Histogram lateness_;
  std::atomic<std::int64_t> next_ns_{0};  // 0: not started
};

}  // namespace hostile
