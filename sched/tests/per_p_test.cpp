// One value per P: no count is lost, and no two Ps share a value.
#include <tuza/sched/per_p.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/hogs.h>

#include <cstdint>
#include <thread>

namespace tuza {
namespace {

using testing::run_with;

using Counter = std::atomic<std::uint64_t>;

std::uint64_t sum_of(const PerP<Counter>& counters) {
  std::uint64_t sum = 0;
  for (const Counter& part : counters) sum += part.load(std::memory_order_relaxed);
  return sum;
}

TEST(PerP, LosesNothing) {
  constexpr std::uint64_t kEach = 1'000, kGoroutines = 50, kThreads = 4;
  PerP<Counter> counters;
  const auto count = [&counters] {
    for (std::uint64_t i = 0; i < kEach; ++i) counters.mine().fetch_add(1, std::memory_order_relaxed);
  };
  run_with(4, [&count] {
    WaitGroup group;
    for (std::uint64_t i = 0; i < kGoroutines; ++i) {
      group.go([&count] {
        count();
        blocking([&count] { count(); });
        yield();
      });
    }
    std::vector<std::thread> outside;
    for (std::uint64_t i = 0; i < kThreads; ++i) outside.emplace_back(count);
    group.wait();
    for (std::thread& thread : outside) thread.join();
  });
  EXPECT_EQ(sum_of(counters), kEach * (2 * kGoroutines + kThreads));
}

// Two goroutines that wait for each other without parking have two Ps.
TEST(PerP, TwoPsHaveTwoValues) {
  const testing::LongSlices no_handoff;
  run_with(2, [] {
    PerP<Counter> counters;
    std::atomic<Counter*> mine = nullptr;
    WaitGroup group;
    group.go([&] {
      mine = &counters.mine();
      while (mine != nullptr) {
      }
    });
    while (mine == nullptr) {
    }
    EXPECT_NE(mine.load(), &counters.mine());
    mine = nullptr;
    group.wait();
  });
}

TEST(PerP, OutsideOfARunItWorksToo) {
  PerP<Counter> counters;
  counters.mine() += 2;
  EXPECT_EQ(sum_of(counters), 2U);
}

}  // namespace
}  // namespace tuza
