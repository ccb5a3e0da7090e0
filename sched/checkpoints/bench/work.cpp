#include <tuza/sched/checkpoints/bench/work.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <numeric>
#include <regex>
#include <string>
#include <vector>

namespace tuza::bench {
namespace {

std::uint64_t next(std::uint64_t x) {
  x ^= x << 13;
  x ^= x >> 7;
  return x ^ x << 17;
}
constexpr std::uint64_t kSeed = 88172645463325252ull;

// One block, six dependent instructions a round.
std::uint64_t tight_loop(std::uint64_t rounds) {
  std::uint64_t x = kSeed;
  for (std::uint64_t i = 0; i < rounds; ++i) x = next(x);
  return x;
}

// The worst case: one addition a round, which a compiler would keep in registers.
std::uint64_t sum(std::uint64_t rounds) {
  static const std::vector<std::uint32_t> numbers(4096, 3);
  std::uint64_t total = 0;
  for (std::uint64_t i = 0; i < rounds / numbers.size(); ++i) {
    total = std::accumulate(numbers.begin(), numbers.end(), total) ^ i;
  }
  return total;
}

std::vector<std::uint64_t> numbers(std::uint64_t n) {
  std::vector<std::uint64_t> made(n);
  std::uint64_t x = kSeed;
  for (std::uint64_t& number : made) number = x = next(x);
  return made;
}

int compare(const void* a, const void* b) {
  const auto x = *static_cast<const std::uint64_t*>(a);
  const auto y = *static_cast<const std::uint64_t*>(b);
  return x < y ? -1 : x > y ? 1 : 0;
}

std::uint64_t qsort_numbers(std::uint64_t n) {
  std::vector<std::uint64_t> v = numbers(n);
  std::qsort(v.data(), v.size(), sizeof v[0], &compare);
  return v[n / 3];
}

std::uint64_t sort_numbers(std::uint64_t n) {
  std::vector<std::uint64_t> v = numbers(n);
  std::ranges::sort(v);
  return v[n / 3];
}

std::uint64_t regex(std::uint64_t rounds) {
  static const std::regex date("(\\d{4})-(\\d{2})-(\\d{2})T(\\d+):(\\d+)");
  const std::string line = "host app[99]: at 12:30, on 2026-11-21T16:20:00Z, the request took 5 ms";
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    std::smatch match;
    if (std::regex_search(line, match, date)) found += static_cast<std::uint64_t>(match.position(1)) + i;
  }
  return found;
}

std::uint64_t map(std::uint64_t rounds) {
  std::map<std::string, std::uint64_t> counts;
  std::uint64_t x = kSeed;
  for (std::uint64_t i = 0; i < rounds; ++i) {
    x = next(x);
    counts["key" + std::to_string(x % 1000)] += i;
  }
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0},
                         [](std::uint64_t a, const auto& entry) { return a ^ entry.second; });
}

// Three nested loops over doubles, as the compiler finds them.
std::uint64_t matrix(std::uint64_t rounds) {
  constexpr std::size_t kN = 64;
  using Matrix = std::array<std::array<double, kN>, kN>;
  static Matrix a, b, c;
  for (auto& row : a) row.fill(1.5);
  for (auto& row : b) row.fill(0.25);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < kN; ++i) {
      for (std::size_t j = 0; j < kN; ++j) {
        double total = 0;
        for (std::size_t k = 0; k < kN; ++k) total += a[i][k] * b[k][j];
        c[i][j] = total;
      }
    }
    a[round % kN][0] = c[0][round % kN] / 24;
  }
  return static_cast<std::uint64_t>(c[3][5] * 1000);
}

}  // namespace

std::span<const Work> all_work() {
  static constexpr std::array<Work, 7> kAll = {{{"tight_loop", &tight_loop, 20'000'000, "step"},
                                                {"sum", &sum, 40'000'000, "number"},
                                                {"matrix", &matrix, 80, "product"},
                                                {"sort", &sort_numbers, 400'000, "number"},
                                                {"qsort", &qsort_numbers, 400'000, "number"},
                                                {"map", &map, 200'000, "operation"},
                                                {"regex", &regex, 8'000, "search"}}};
  return kAll;
}

void spin_until(const std::atomic<bool>& stop) {
  for (std::uint64_t x = kSeed; !stop.load(std::memory_order_relaxed);) x = next(x);
}

}  // namespace tuza::bench
