#include <gtest/gtest.h>
#include <tuza/framework/metrics/route_counts.h>

#include <string>
#include <thread>
#include <vector>

namespace tuza {
namespace {

TEST(RouteCounts, CountByTheTextOfThePattern) {
  RouteCounts counts;
  EXPECT_TRUE(counts.sums().empty());
  std::string pattern = "GET /items/{id}";
  counts.add(pattern, 200, 1'000'000);
  pattern = "GET /other";  // the same memory
  counts.add(pattern, 503, 20'000'000'000);
  counts.add(std::string("GET /items/{id}"), 404, 2'000'000);
  counts.add("", 0, 0);
  const std::vector<RouteCounts::Sum> sums = counts.sums();
  ASSERT_EQ(sums.size(), 3U);
  EXPECT_EQ(sums[0].pattern, "(none)");
  EXPECT_EQ(sums[0].requests, (std::array<std::uint64_t, 5>{1, 0, 0, 0, 0}));
  EXPECT_EQ(sums[1].pattern, "GET /items/{id}");
  EXPECT_EQ(sums[1].requests, (std::array<std::uint64_t, 5>{0, 1, 0, 1, 0}));
  EXPECT_EQ(sums[1].duration_ns, 3'000'000U);
  EXPECT_EQ(sums[2].pattern, "GET /other");
  EXPECT_EQ(sums[2].buckets.back(), 1U);
}

TEST(RouteCounts, TooManyPatternsAreCountedTogether) {
  RouteCounts counts;
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < RouteCounts::kRoutesMax + 100; ++i) {
      counts.add("GET /" + std::to_string(i), 200, 1);
    }
  }
  const std::vector<RouteCounts::Sum> sums = counts.sums();
  ASSERT_EQ(sums.size(), RouteCounts::kRoutesMax + 1);
  for (const RouteCounts::Sum& sum : sums) {
    EXPECT_EQ(sum.requests[1], sum.pattern == "(others)" ? 200U : 2U) << sum.pattern;
  }
}

// All threads meet at the same empty places.
TEST(RouteCounts, NothingIsLostIfManyThreadsAddTheFirst) {
  constexpr int kThreads = 8, kPatterns = 50, kRounds = 20;
  for (int attempt = 0; attempt < 20; ++attempt) {
    RouteCounts counts;
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int round = 0; round < kRounds; ++round) {
          for (int i = 0; i < kPatterns; ++i) counts.add("GET /" + std::to_string(i), 200, 1);
        }
      });
    }
    threads.clear();
    const std::vector<RouteCounts::Sum> sums = counts.sums();
    ASSERT_EQ(sums.size(), static_cast<std::size_t>(kPatterns));
    for (const RouteCounts::Sum& sum : sums) {
      EXPECT_EQ(sum.requests[1], static_cast<std::uint64_t>(kThreads * kRounds)) << sum.pattern;
    }
  }
}

}  // namespace
}  // namespace tuza
