// WaitGroup, Mutex, sleep.
#include <tuza/sched/go.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using testing::run_with;
using testing::scaled;
using testing::WithProcs;
using Clock = std::chrono::steady_clock;

class SyncTest : public WithProcs {};
TUZA_WITH_PROCS(SyncTest);

TEST_P(SyncTest, WaitGroupMakesTheWorkOfOthersVisible) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(2'000); ++round) {
      int parts[8] = {};  // plain ints: TSan checks the ordering
      WaitGroup group;
      for (int& part : parts) group.go([&part] { part = 1; });
      group.wait();
      for (const int part : parts) ASSERT_EQ(part, 1);
    }
  });
}

TEST_P(SyncTest, WaitGroupMayBeDestroyedAsSoonAsWaitReturns) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(20'000); ++round) {
      auto group = std::make_unique<WaitGroup>();
      group->go([] {});
      group->wait();
      group.reset();  // ASan sees a done() that still touches it
    }
  });
}

TEST_P(SyncTest, WaitGroupReleasesEveryWaiter) {
  run_with(GetParam(), [] {
    WaitGroup start, finished;
    std::atomic<int> released{0};
    start.add(1);
    for (int i = 0; i < 100; ++i) {
      finished.go([&] {
        start.wait();
        ++released;
      });
    }
    yield();
    EXPECT_EQ(released.load(), 0);
    start.done();
    finished.wait();
    EXPECT_EQ(released.load(), 100);
    start.wait();  // at zero it does not wait
  });
}

TEST_P(SyncTest, MutexExcludes) {
  run_with(GetParam(), [] {
    Mutex mutex;
    std::int64_t counter = 0;  // a plain integer: TSan checks the ordering
    const int rounds = scaled(2'000);
    WaitGroup group;
    for (int g = 0; g < 16; ++g) {
      group.go([&] {
        for (int i = 0; i < rounds; ++i) {
          const std::scoped_lock lock(mutex);
          const std::int64_t seen = counter;
          if (i % 7 == 0) yield();  // held over a park
          counter = seen + 1;
        }
      });
    }
    group.wait();
    EXPECT_EQ(counter, 16 * rounds);
  });
}

TEST_P(SyncTest, MutexTryLockNeverWaits) {
  run_with(GetParam(), [] {
    Mutex mutex;
    EXPECT_TRUE(mutex.try_lock());
    EXPECT_FALSE(mutex.try_lock());
    mutex.unlock();
    EXPECT_TRUE(mutex.try_lock());
    mutex.unlock();
  });
}

TEST_P(SyncTest, MutexMayBeUnlockedByAnotherGoroutine) {
  run_with(GetParam(), [] {
    Mutex mutex;
    mutex.lock();
    WaitGroup group;
    group.go([&mutex] { mutex.unlock(); });
    mutex.lock();
    mutex.unlock();
    group.wait();
  });
}

TEST(Mutex, HandsTheLockToTheOneThatWaitedLongest) {
  const testing::LongSlices long_slices;
  run_with(1, [] {
    Mutex mutex;
    std::vector<int> order;
    WaitGroup group;
    mutex.lock();
    for (int i = 0; i < 10; ++i) {
      group.go([&, i] {
        const std::scoped_lock lock(mutex);
        order.push_back(i);
      });
      yield();  // with one P, it is waiting now
    }
    mutex.unlock();
    group.wait();
    EXPECT_EQ(order.size(), 10u);
    if (!rt::chaos::kEnabled) {
      EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
    }
  });
}

TEST(SyncDeathTest, MisuseIsFatalInEveryBuild) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run([] { Mutex().unlock(); }), "unlock of a Mutex that is not locked");
  EXPECT_DEATH(run([] { WaitGroup().done(); }), "more done\\(\\) than add\\(\\)");
  EXPECT_DEATH(run([] {
                 auto group = std::make_unique<WaitGroup>();
                 group->add(1);
                 std::atomic<bool> begun = false;
                 go([&] {
                   begun = true;
                   group->wait();
                 });
                 while (!begun) yield();
                 sleep_for(std::chrono::milliseconds(50));
                 group.reset();
               }),
               "WaitGroup destroyed while goroutines wait");
}

TEST_P(SyncTest, SleepNeverWakesEarly) {
  run_with(GetParam(), [] {
    WaitGroup group;
    for (int i = 0; i < 50; ++i) {
      group.go([i] {
        const auto duration = std::chrono::microseconds(100 * i);
        const auto before = Clock::now();
        sleep_for(duration);
        EXPECT_GE(Clock::now() - before, duration);
      });
    }
    group.wait();
  });
}

TEST_P(SyncTest, SleepersDoNotKeepTheThread) {
  run_with(GetParam(), [] {
    // A thousand sleeps of 20 ms each side by side, not one after the other: 20 s of sleep in far less.
    const auto before = Clock::now();
    WaitGroup group;
    for (int i = 0; i < 1000; ++i) group.go([] { sleep_for(20ms); });
    group.wait();
    EXPECT_LT(Clock::now() - before, 10s);
  });
}

TEST_P(SyncTest, SleepForNothingReturnsAtOnce) {
  run_with(GetParam(), [] {
    sleep_for(0ms);
    sleep_for(-5h);
    sleep_until(Clock::now() - 1h);
    sleep_until(Clock::time_point::min());
  });
}

TEST_P(SyncTest, SleepsFromManyGoroutinesEndInOrder) {
  run_with(GetParam(), [] {
    Mutex mutex;
    std::vector<int> order;
    WaitGroup group;
    for (const int i : {5, 1, 4, 2, 3}) {
      group.go([&, i] {
        sleep_for(i * 40ms);
        const std::scoped_lock lock(mutex);
        order.push_back(i);
      });
    }
    group.wait();
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4, 5}));
  });
}

}  // namespace
}  // namespace tuza
