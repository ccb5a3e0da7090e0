#include <tuza/framework/metrics/http_counts.h>

namespace tuza {
namespace {

void add(std::atomic<std::uint64_t>& number, std::uint64_t n) {
  number.fetch_add(n, std::memory_order_relaxed);
}

std::uint64_t value(const std::atomic<std::uint64_t>& number) {
  return number.load(std::memory_order_relaxed);
}

}  // namespace

std::size_t HttpCounts::bucket_of(std::int64_t duration_ns) {
  const double seconds = static_cast<double>(duration_ns) * 1e-9;
  std::size_t i = 0;
  while (i < kBoundsSeconds.size() && seconds > kBoundsSeconds[i]) ++i;
  return i;
}

std::size_t HttpCounts::class_of(int status) {
  return status >= 200 && status < 600 ? static_cast<std::size_t>(status / 100 - 1) : 0;
}

void HttpCounts::begin() { add(numbers_.mine().begun, 1); }

void HttpCounts::end(http::Method method, int status, std::uint64_t response_bytes) {
  auto& mine = numbers_.mine();
  add(mine.requests[static_cast<std::size_t>(method)][class_of(status)], 1);
  add(mine.response_bytes, response_bytes);
}

HttpCounts::Sum HttpCounts::sum() const {
  Sum sum;
  for (const auto& part : numbers_) {
    for (std::size_t m = 0; m < sum.requests.size(); ++m) {
      for (std::size_t c = 0; c < kClasses.size(); ++c) sum.requests[m][c] += value(part.requests[m][c]);
    }
    sum.response_bytes += value(part.response_bytes);
  }
  // Read last, so that every request counted as ended is also counted as begun.
  for (const auto& part : numbers_) sum.begun += value(part.begun);
  return sum;
}

}  // namespace tuza
