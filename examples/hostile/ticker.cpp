#include <tuza/examples/hostile/ticker.h>

#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>

namespace hostile {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

// Exact below 2^(kBits+1); above that, the magnitude and the highest kBits+1 bits of the number determine the bucket.
std::size_t Histogram::bucket(std::uint64_t ns) {
  const auto width = static_cast<unsigned>(std::bit_width(ns));
  const unsigned shift = width > kBits + 1 ? width - kBits - 1 : 0;
  return (std::size_t{shift} << kBits) + static_cast<std::size_t>(ns >> shift);
}

std::uint64_t Histogram::highest(std::size_t bucket) {
  const std::size_t shift = bucket < (std::size_t{2} << kBits) ? 0 : (bucket >> kBits) - 1;
  const std::uint64_t top = bucket - (shift << kBits);
  return ((top + 1) << shift) - 1;
}

// All accesses are relaxed: at worst, a reader misses a value that is being added.
void Histogram::add(std::uint64_t ns, std::uint64_t times) {
  counts_[bucket(ns)].fetch_add(times, std::memory_order_relaxed);
  if (ns > max()) max_.store(ns, std::memory_order_relaxed);
}

void Histogram::take(Histogram& from, bool clear) {
  for (std::size_t i = 0; i < kBuckets; ++i) {
    counts_[i] = clear ? from.counts_[i].exchange(0, std::memory_order_relaxed)
                       : from.counts_[i].load(std::memory_order_relaxed);
  }
  max_ = clear ? from.max_.exchange(0, std::memory_order_relaxed) : from.max();
}

std::uint64_t Histogram::count() const {
  std::uint64_t sum = 0;
  for (const auto& n : counts_) sum += n.load(std::memory_order_relaxed);
  return sum;
}

std::uint64_t Histogram::max() const { return max_.load(std::memory_order_relaxed); }

std::uint64_t Histogram::percentile(double share) const {
  const auto rank = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count())));
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    sum += counts_[i].load(std::memory_order_relaxed);
    if (sum >= rank && sum > 0) return std::min(highest(i), max());
  }
  return 0;
}

void Ticker::run() {
  std::int64_t next = now_ns() + kPeriodNs;
  for (;; next += kPeriodNs) {
    next_ns_.store(next, std::memory_order_relaxed);
    tuza::sleep_until(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(next)));
    lateness_.add(static_cast<std::uint64_t>(std::max<std::int64_t>(0, now_ns() - next)));
  }
}

std::string Ticker::json(bool reset) {
  const auto window = std::make_unique<Histogram>();
  window->take(lateness_, reset);
  const std::int64_t now = now_ns();
  const std::int64_t next = next_ns_.load(std::memory_order_relaxed);
  for (std::int64_t tick = next; !reset && next != 0 && tick <= now; tick += kPeriodNs) {
    window->add(static_cast<std::uint64_t>(now - tick));
  }
  const auto us = [](std::uint64_t ns) { return static_cast<double>(ns) / 1000; };
  char text[256];
  std::snprintf(text, sizeof text,
                R"({"count":%llu,"p50_us":%.1f,"p99_us":%.1f,"p999_us":%.1f,"max_us":%.1f})",
                static_cast<unsigned long long>(window->count()), us(window->percentile(0.5)),
                us(window->percentile(0.99)), us(window->percentile(0.999)), us(window->max()));
  return text;
}

}  // namespace hostile
