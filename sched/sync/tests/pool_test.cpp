// Pools: an object that was put back is found again, by other goroutines too; nothing is lost or kept for
// ever.
#include <tuza/sched/go.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/pool.h>
#include <tuza/sched/sync/tests/counting_new.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tuza {
namespace {

using namespace testing;

class PoolTest : public WithProcs {};
TUZA_WITH_PROCS(PoolTest);

// An object that counts its live instances and its uses.
struct Thing {
  explicit Thing(std::atomic<int>& count, std::int64_t* sum_of_uses = nullptr)
      : living(count), sum(sum_of_uses) {
    ++living;
  }
  ~Thing() {
    --living;
    if (sum != nullptr) *sum += uses;
  }
  Thing(const Thing&) = delete;
  Thing& operator=(const Thing&) = delete;
  std::atomic<int>& living;
  std::int64_t* const sum;
  int uses = 0;  // a plain int: TSan checks the ordering
};

TEST(PoolTest, TheExample) {
  Pool<std::string> buffers([] { return std::string(4096, '\0'); });
  auto buffer = buffers.get();
  EXPECT_EQ(buffer->size(), 4096u);
  EXPECT_EQ((*buffer)[0], '\0');
}

TEST(PoolTest, WorksWithoutARuntime) {
  std::atomic<int> living{0};
  {
    Pool<Thing> pool([&] { return Thing(living); });
    {
      auto one = pool.get();
      auto two = pool.get();
      ++one->uses;
      auto moved = std::move(one);
      EXPECT_EQ(moved->uses, 1);
      one = std::move(moved);
      EXPECT_EQ(living, 2);
    }
    {
      auto one = pool.get();
      auto two = pool.get();
      EXPECT_EQ(one->uses + two->uses, 1) << "as they were left";
      EXPECT_EQ(living, 2);
    }
    pool.trim();
    EXPECT_EQ(living, 0);
    {
      auto again = pool.get();
    }
  }
  EXPECT_EQ(living, 0);
}

TEST_P(PoolTest, TheSameObjectComesBack) {
  run_with(GetParam(), [] {
    std::atomic<int> living{0};
    {
      Pool<Thing> pool([&] { return Thing(living); });
      for (int i = 0; i < 1000; ++i) ++pool.get()->uses;
      EXPECT_LE(living, 8) << "one for each processor that the goroutine was on, or none";
    }
    EXPECT_EQ(living, 0);
  });
}

TEST_P(PoolTest, OneAtATimeHasAnObject) {
  run_with(GetParam(), [] {
    std::atomic<int> living{0};
    std::int64_t uses = 0;
    {
      Pool<Thing> pool([&] { return Thing(living, &uses); });
      WaitGroup group;
      std::vector<std::thread> threads;
      const auto work = [&pool] {
        for (int i = 0; i < scaled(5'000); ++i) {
          auto one = pool.get();
          ++one->uses;
          if (i % 16 == 0) {
            auto two = pool.get();
            ++two->uses;
          }
        }
      };
      for (int i = 0; i < 4; ++i) {
        group.go([&] {
          for (int round = 0; round < 4; ++round) {
            work();
            yield();
          }
        });
      }
      for (int i = 0; i < 2; ++i) threads.emplace_back(work);
      group.wait();
      for (std::thread& thread : threads) thread.join();
    }
    const std::int64_t rounds = scaled(5'000);
    EXPECT_EQ(uses, (4 * 4 + 2) * (rounds + (rounds + 15) / 16)) << "two had one object at once";
    EXPECT_EQ(living, 0);
  });
}

// Objects that one processor has put back serve the others: a producer and a consumer on different ones.
TEST(PoolTest, OthersStealWhatLiesIdle) {
  std::atomic<int> living{0};
  Pool<Thing> pool([&] { return Thing(living); });
  run_with(1, [&] {
    std::vector<Pool<Thing>::Item> items;
    for (int i = 0; i < 100; ++i) items.push_back(pool.get());
  });
  EXPECT_EQ(living, 100);
  std::vector<Pool<Thing>::Item> items;
  for (int i = 0; i < 90; ++i) items.push_back(pool.get());  // a thread without a P
  EXPECT_EQ(living, 100);
}

TEST_P(PoolTest, WhatIsNotNeededForASecondGoesByItself) {
  run_with(GetParam(), [] {
    std::atomic<int> living{0};
    Pool<Thing> pool([&] { return Thing(living); });
    {
      std::vector<Pool<Thing>::Item> burst;
      for (int i = 0; i < 500; ++i) burst.push_back(pool.get());
    }
    EXPECT_GE(living, 500);
    while (living > 100) {  // ended by the timeout of the whole test
      for (int i = 0; i < 300; ++i) ++pool.get()->uses;
      sleep_for(std::chrono::milliseconds(50));
    }
  });
}

TEST(PoolTest, WhatThreadsDoNotNeedGoesToo) {
  std::atomic<int> living{0};
  Pool<Thing> pool([&] { return Thing(living); });
  {
    std::vector<Pool<Thing>::Item> burst;
    for (int i = 0; i < 500; ++i) burst.push_back(pool.get());
  }
  while (living > 100) {
    for (int i = 0; i < 300; ++i) ++pool.get()->uses;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

TEST_P(PoolTest, WhatTheMakerThrowsLeavesGet) {
  run_with(GetParam(), [] {
    bool fail = true;
    Pool<int> pool([&] { return fail ? throw std::runtime_error("no") : 7; });
    EXPECT_THROW((void)pool.get(), std::runtime_error);
    fail = false;
    EXPECT_EQ(*pool.get(), 7);
  });  // and the pool does not count an object as in use
}

TEST_P(PoolTest, NothingIsAllocatedOnTheWay) {
  if (!testing::kCountsAllocations) GTEST_SKIP();
  run_with(GetParam(), [] {
    Pool<int> pool;
    std::uint64_t before = 0;
    for (int i = 0; i < 1'200; ++i) {
      if (i == 200) before = testing::allocations();
      auto one = pool.get();
      auto two = pool.get();
      if (i % 10 == 0) yield();
    }
    EXPECT_LE(testing::allocations() - before, 16u) << "two for each P that has none yet";
  });
}

// Objects that goroutines of an earlier run took are unreachable.
TEST_P(PoolTest, APoolOfAnEarlierRunMayGoInALaterOne) {
  std::unique_ptr<Pool<int>> pool;
  const auto leave_one = [&pool] {
    if (pool == nullptr) pool = std::make_unique<Pool<int>>();
    go([&pool] {
      const auto item = pool->get();
      Chan<int>().recv();
    });
    wait_until_parked(1, WaitReason::kChanReceive);
  };
  run(RunOptions{.max_procs = GetParam()}, leave_one);
  run(RunOptions{.max_procs = GetParam()}, [&pool] { pool.reset(); });
}

TEST(PoolDeathTest, APoolMustOutliveWhatWasTaken) {
  EXPECT_DEATH(run_with(1,
                        [] {
                          auto pool = std::make_unique<Pool<int>>();
                          auto item = pool->get();
                          pool.reset();
                        }),
               "Pool destroyed while its objects are in use");
}

}  // namespace
}  // namespace tuza
