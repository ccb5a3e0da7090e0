// Fake time advances when all goroutines wait, and only then. Leaks are found and named.
#include <tuza/sched/blocking.h>
#include <tuza/sched/detail/clock_source.h>
#include <tuza/sched/external.h>
#include <tuza/sched/go.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/detail/event.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/clock.h>
#include <tuza/sched/time/fake_clock.h>
#include <tuza/sched/time/leak_check.h>
#include <tuza/sched/time/rate.h>
#include <tuza/sched/time/ticker.h>
#include <tuza/sched/time/timer.h>

#include <thread>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using namespace testing;

class FakeClockTest : public WithProcs {};
TUZA_WITH_PROCS(FakeClockTest);

TEST_P(FakeClockTest, ADayPassesAtOnce) {
  run_with(GetParam(), [] {
    const auto real = std::chrono::steady_clock::now();
    const FakeClock clock;
    const auto began = now();
    sleep_for(24h);
    EXPECT_EQ(now() - began, 24h);
    EXPECT_EQ(clock.elapsed(), 24h);
    EXPECT_LT(std::chrono::steady_clock::now() - real, 1h);
  });
}

// The example of the header: a cleaner that runs every hour.
TEST_P(FakeClockTest, AdvanceLetsAllHappenThatIsDueUntilThen) {
  run_with(GetParam(), [] {
    FakeClock clock;
    int cleaned = 0;
    auto [ctx, cancel] = with_cancel(Context::background());
    WaitGroup group;
    group.go([&, ctx = ctx] {
      Ticker ticker(1h);
      while (ticker.wait(ctx)) ++cleaned;
    });
    clock.advance(25h);
    EXPECT_EQ(cleaned, 25);
    clock.advance(30min);
    EXPECT_EQ(cleaned, 25);
    clock.advance(30min);
    EXPECT_EQ(cleaned, 26);
    cancel();
    group.wait();
  });
}

TEST_P(FakeClockTest, SleepersWakeInOrderOfTime) {
  run_with(GetParam(), [] {
    const FakeClock clock;
    const int n = scaled(1'000) + 10;
    std::vector<int> order;
    WaitGroup group;
    for (int i = 0; i < n; ++i) {
      const int at = (i * 7919) % n;
      group.go([&, at] {
        sleep_for(std::chrono::seconds(at));
        order.push_back(at);  // no lock: only one of them runs at any time
      });
    }
    group.wait();
    EXPECT_EQ(order.size(), static_cast<std::size_t>(n));
    // Goroutines with a delay of zero do not sleep, and come at any time.
    std::erase(order, 0);
    EXPECT_TRUE(std::ranges::is_sorted(order));
  });
}

TEST_P(FakeClockTest, AGoroutineThatComputesHoldsTimeStill) {
  run_with(GetParam(), [] {
    const FakeClock clock;
    std::atomic<bool> computing{true};
    WaitGroup group;
    group.go([&] {
      const auto until = std::chrono::steady_clock::now() + 30ms;  // longer than a slice: it may lose its P
      while (std::chrono::steady_clock::now() < until) {
      }
      EXPECT_EQ(clock.elapsed(), 0s);
      computing = false;
    });
    group.go([&] {
      blocking([] {
        while (!awake_ms_are(1)) std::this_thread::sleep_for(1ms);
      });
      EXPECT_EQ(clock.elapsed(), 0s);
    });
    sleep_for(1s);
    EXPECT_FALSE(computing.load());
    group.wait();
    EXPECT_EQ(clock.elapsed(), 1s);
  });
}

TEST_P(FakeClockTest, APromiseToWakeHoldsTimeStill) {
  run_with(GetParam(), [] {
    const FakeClock clock;
    rt::Event woken;
    std::thread thread([&, promise = ExternalWaker()] {
      while (!awake_ms_are(0)) std::this_thread::sleep_for(1ms);
      woken.fire();
    });
    EXPECT_TRUE(woken.wait(WaitReason::kTest, {.deadline_ns = rt::deadline_after(1s)}));
    EXPECT_EQ(clock.elapsed(), 0s);
    thread.join();
  });
}

TEST_P(FakeClockTest, SettleWaitsForTheOthersWithoutTime) {
  run_with(GetParam(), [] {
    FakeClock clock;
    int steps = 0;
    go([&] {
      for (int i = 0; i < 100; ++i) {
        ++steps;
        yield();
      }
      sleep_for(1s);
      ++steps;
    });
    clock.settle();
    EXPECT_EQ(steps, 100);
    EXPECT_EQ(clock.elapsed(), 0s);
    clock.advance(1s);
    EXPECT_EQ(steps, 101);
  });
}

TEST_P(FakeClockTest, GovernsContextsWaitsAndLimiters) {
  run_with(GetParam(), [] {
    const FakeClock clock;
    const auto [ctx, cancel] = with_timeout(Context::background(), 10s);
    ctx.wait();
    EXPECT_EQ(clock.elapsed(), 10s);
    rt::Event never;
    EXPECT_FALSE(never.wait(WaitReason::kTest, {.deadline_ns = rt::deadline_after(5s)}));
    EXPECT_EQ(clock.elapsed(), 15s);
    rate::Limiter limiter(0.1, 1);
    EXPECT_TRUE(limiter.wait());
    EXPECT_TRUE(limiter.wait());
    EXPECT_EQ(clock.elapsed(), 25s);
  });
}

TEST_P(FakeClockTest, ADeadlineThatHasPassedNeedsNoStandstill) {
  run_with(GetParam(), [] {
    const FakeClock clock;
    rt::Event never;
    std::atomic<bool> over{false};
    go([&] {
      EXPECT_FALSE(never.wait(WaitReason::kTest, {.deadline_ns = rt::deadline_after(0s)}));
      over = true;
    });
    testing::yield_until([&] { return over.load(); });
    EXPECT_EQ(clock.elapsed(), 0s);
  });
}

TEST_P(FakeClockTest, ThreadsWaitInFakeTimeToo) {
  run_with(GetParam(), [] {
    const FakeClock clock;
    rt::Event never;
    std::atomic<bool> over{false};
    const std::int64_t deadline_ns = rt::deadline_after(1h);
    std::thread thread([&] {
      EXPECT_FALSE(never.wait(WaitReason::kTest, {.deadline_ns = deadline_ns}));
      over = true;
    });
    sleep_for(2h);
    blocking([&] { thread.join(); });
    EXPECT_TRUE(over.load());
  });
}

TEST_P(FakeClockTest, WhatIsLeftContinuesInRealTime) {
  run_with(GetParam(), [] {
    WaitGroup group;
    Timer timer;
    {
      FakeClock clock;
      timer.reset(24h + 2ms);
      group.go([] { sleep_for(24h + 1ms); });
      clock.advance(24h);
      EXPECT_FALSE(timer.try_wait());
    }
    group.wait();
    timer.wait();
  });
}

TEST_P(FakeClockTest, OneAfterTheOtherUnderLoad) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(100); ++round) {
      FakeClock clock;
      WaitGroup group;
      std::atomic<int> sum{0};
      for (int i = 1; i <= 8; ++i) {
        group.go([&, i] {
          for (int k = 0; k < 5; ++k) sleep_for(i * 1s);
          sum += static_cast<int>(clock.elapsed() / 1s);
        });
      }
      group.wait();
      ASSERT_EQ(sum.load(), 5 * 36);
      ASSERT_EQ(clock.elapsed(), 40s);
    }
  });
}

TEST(FakeClockDeathTest, ADeadlockIsStillFound) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run(RunOptions{.max_procs = 2},
                  [] {
                    const FakeClock clock;
                    sleep_for(1h);
                    Mutex mutex;
                    mutex.lock();
                    mutex.lock();
                  }),
              ::testing::ExitedWithCode(2), "all goroutines are asleep - deadlock!");
}

TEST(FakeClockDeathTest, ThereIsOneAtATimeAndOnGoroutines) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run([] { const FakeClock one, two; }), "a FakeClock already exists");
  EXPECT_DEATH((void)FakeClock(), "a FakeClock needs a goroutine");
}

TEST(FakeClockRuntimes, AnAbandonedOneIsGoneInTheNext) {
  run([] {
    go([] {
      const FakeClock clock;
      rt::Event never;
      never.wait(WaitReason::kTest);
    });
    while (!rt::clock_is_fake()) yield();
  });
  run_with(1, [] {
    EXPECT_FALSE(rt::clock_is_fake());
    sleep_for(1ms);
    const FakeClock clock;
    sleep_for(1h);
  });
}

class LeakCheckTest : public WithProcs {};
TUZA_WITH_PROCS(LeakCheckTest);

TEST_P(LeakCheckTest, NamesTheRemainingGoroutines) {
  run_with(GetParam(), [] {
    rt::Event end;
    WaitGroup group;
    group.go([&] { end.wait(WaitReason::kContext); });  // existed before the check
    const LeakCheck leaks;
    EXPECT_EQ(leaks.report(), "");
    group.add(1);
    go({.name = "forgotten"}, [&] {
      end.wait(WaitReason::kChanReceive);
      group.done();
    });
    yield();
    const std::string report = leaks.report(50ms);
    EXPECT_NE(report.find("[chan receive] forgotten, created in "), std::string::npos) << report;
    EXPECT_NE(report.find("fake_clock_test.cpp:"), std::string::npos) << report;
    EXPECT_EQ(std::ranges::count(report, '\n'), 1) << report;
    end.fire();
    group.wait();
    EXPECT_EQ(leaks.report(), "");
  });
}

TEST_P(LeakCheckTest, WaitsForGoroutinesThatAreAboutToEnd) {
  run_with(GetParam(), [] {
    for (int i = 0; i < scaled(200); ++i) {
      const LeakCheck leaks;
      go([] { yield(); });
    }
  });
}

TEST(LeakCheckDeathTest, EndsTheProcessIfNobodyAsked) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run([] {
                 const LeakCheck leaks;
                 go({.name = "forgotten"}, [] { sleep_for(1h); });
               }),
               "goroutines were left behind:\n.*\\[sleep\\] forgotten");
}

TEST_P(FakeClockTest, TimeLimitsOfLocksGoByIt) {
  run_with(GetParam(), [] {
    const FakeClock clock;
    Mutex mutex;
    mutex.lock();
    sleep_for(24h);
    const auto began = now();
    EXPECT_FALSE(mutex.try_lock_until(began + 1s));
    EXPECT_EQ(now() - began, 1s);
    EXPECT_FALSE(mutex.try_lock_for(1s));
    EXPECT_EQ(now() - began, 2s);
    mutex.unlock();
  });
}

// The thread of a locked goroutine waits for that goroutine alone, and cannot advance time. A real timer is
// pending: the clock used to wait for it.
// Sysmon takes a goroutine's P. The goroutine goes on without it, and parks before that P is idle. Whoever looks last must see
// that everything stands still.
TEST_P(FakeClockTest, PassesWhenAPIsTakenFromTheLastThatParks) {
  run_with(GetParam(), [] {
    FakeClock clock;
    WaitGroup group;
    for (int i = 0; i < 3; ++i) {
      group.go([i] {
        for (int round = 0; round < 60; ++round) {
          const auto until = std::chrono::steady_clock::now() + (1 + (round + 20 * i) % 30) * 600us;
          while (std::chrono::steady_clock::now() < until) {
          }
          sleep_for(1s);
        }
      });
    }
    group.wait();
  });
}

TEST_P(FakeClockTest, PassesWhenTheLastThatWaitsIsLockedToItsThread) {
  run(RunOptions{.max_procs = GetParam()}, [] {
    go([] { sleep_for(1h); });
    yield();
    const FakeClock clock;
    lock_os_thread();
    sleep_for(2h);
    unlock_os_thread();
  });
}

}  // namespace
}  // namespace tuza
