// Timer, Ticker and after_func: the documented semantics of Go's time package (1.23), as facts, in fake time.
#include <tuza/sched/go.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/select.h>
#include <tuza/sched/sync/tests/counting_new.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/after_func.h>
#include <tuza/sched/time/clock.h>
#include <tuza/sched/time/fake_clock.h>
#include <tuza/sched/time/ticker.h>
#include <tuza/sched/time/timer.h>

#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using namespace testing;

class TimerTest : public WithProcs {};
TUZA_WITH_PROCS(TimerTest);

TEST_P(TimerTest, FiresOnceAtItsTime) {
  run_with(GetParam(), [] {
    const FakeClock clock;
    Timer timer(3s);
    timer.wait();
    EXPECT_EQ(clock.elapsed(), 3s);
    sleep_for(1h);
    EXPECT_FALSE(timer.try_wait());
  });
}

TEST_P(TimerTest, FiresAtOnceIfItsTimeHasPassed) {
  run_with(GetParam(), [] {
    const FakeClock clock;
    for (const auto delay : {0s, -1s, -1'000'000s}) {
      Timer timer(delay);
      timer.wait();
    }
    Timer past;
    EXPECT_FALSE(past.reset_at(clock.now() - 1h));
    past.wait();
    EXPECT_EQ(clock.elapsed(), 0s);
  });
}

TEST_P(TimerTest, StopSaysWhetherThereWasAFireToCome) {
  run_with(GetParam(), [] {
    FakeClock clock;
    Timer never, pending(2s), received(1s), unreceived(1s);
    EXPECT_FALSE(never.stop());
    received.wait();
    clock.settle();
    EXPECT_FALSE(received.stop());
    EXPECT_TRUE(unreceived.stop());  // it has fired, and no receiver will see that any more
    EXPECT_FALSE(unreceived.try_wait());
    EXPECT_TRUE(pending.stop());
    EXPECT_FALSE(pending.stop());
    clock.advance(1h);
    EXPECT_FALSE(pending.try_wait());
  });
}

TEST_P(TimerTest, ResetForgetsTheFireOfBefore) {
  run_with(GetParam(), [] {
    FakeClock clock;
    Timer timer(1s);
    clock.advance(2s);
    EXPECT_TRUE(timer.reset(5s));
    EXPECT_FALSE(timer.try_wait());
    timer.wait();
    EXPECT_EQ(clock.elapsed(), 7s);
    EXPECT_FALSE(timer.reset(1s));  // received
    EXPECT_TRUE(timer.reset(10s));  // later
    EXPECT_TRUE(timer.reset(2s));   // earlier
    timer.wait();
    EXPECT_EQ(clock.elapsed(), 9s);
    timer.reset(1s);
    timer.stop();
    EXPECT_FALSE(timer.reset(1s));
    timer.wait();
    EXPECT_EQ(clock.elapsed(), 10s);
  });
}

TEST_P(TimerTest, OneWaiterGetsTheFire) {
  run_with(GetParam(), [] {
    FakeClock clock;
    Timer timer(1s);
    std::vector<int> order;
    WaitGroup group;
    for (int i = 0; i < 3; ++i) {
      group.go([&, i] {
        timer.wait();
        order.push_back(i);
      });
      clock.settle();
    }
    for (int i = 1; i <= 3; ++i) {
      clock.advance(1s);
      EXPECT_EQ(order.size(), static_cast<std::size_t>(i));
      timer.reset(1s);
    }
    group.wait();
    EXPECT_EQ(order, (std::vector{0, 1, 2}));
    timer.stop();
  });
}

TEST_P(TimerTest, AContextEndsTheWaitAndLeavesTheFire) {
  run_with(GetParam(), [] {
    const FakeClock clock;
    Timer timer(2s);
    auto [ctx, cancel] = with_timeout(Context::background(), 1s);
    const Result<void> waited = timer.wait(ctx);
    ASSERT_FALSE(waited);
    EXPECT_TRUE(waited.error().timeout());
    EXPECT_EQ(clock.elapsed(), 1s);
    timer.wait();
    EXPECT_EQ(clock.elapsed(), 2s);
    EXPECT_FALSE(timer.wait(ctx));  // the context is checked first
    EXPECT_TRUE(after(1s).wait(Context::background()));
  });
}

TEST_P(TimerTest, IsACaseOfSelect) {
  run_with(GetParam(), [] {
    const FakeClock clock;
    Timer late(2s), early(1s);
    Ticker ticker(3s);
    std::vector<int> order;
    for (int i = 0; i < 4; ++i) {
      select(on_fire(late, [&] { order.push_back(2); }), on_fire(early, [&] { order.push_back(1); }),
             on_fire(ticker, [&] { order.push_back(3); }));
    }
    EXPECT_EQ(order, (std::vector{1, 2, 3, 3}));
    EXPECT_EQ(clock.elapsed(), 6s);
  });
}

TEST_P(TimerTest, SleepingEndsWithTheContext) {
  run_with(GetParam(), [] {
    const FakeClock clock;
    auto [ctx, cancel] = with_cancel(Context::background());
    EXPECT_TRUE(sleep_for(ctx, 1s));
    EXPECT_TRUE(sleep_until(ctx, clock.now() + 1s));
    EXPECT_TRUE(sleep_for(ctx, -1s));
    EXPECT_EQ(clock.elapsed(), 2s);
    WaitGroup group;
    group.go([&cancel] {
      sleep_for(1s);
      cancel();
    });
    const Result<void> slept = sleep_for(ctx, 1h);
    group.wait();  // the canceller may still be using the context
    ASSERT_FALSE(slept);
    EXPECT_TRUE(slept.error().cancelled());
    EXPECT_EQ(clock.elapsed(), 3s);
    EXPECT_FALSE(sleep_for(ctx, -1s));
  });
}

TEST_P(TimerTest, AbsurdlyLongDelaysAreForEver) {
  run_with(GetParam(), [] {
    FakeClock clock;
    Timer timer(std::chrono::hours::max()), other(std::chrono::nanoseconds::max());
    Ticker ticker(std::chrono::years(290));
    const auto [ctx, cancel] = with_timeout(Context::background(), 24h * 365 * 100);
    EXPECT_FALSE(sleep_for(ctx, std::chrono::hours::max()));
    EXPECT_FALSE(timer.try_wait());
    EXPECT_TRUE(timer.stop());
    EXPECT_TRUE(other.stop());
    EXPECT_FALSE(ticker.try_wait());
  });
}

class TickerTest : public WithProcs {};
TUZA_WITH_PROCS(TickerTest);

TEST_P(TickerTest, TicksAtFixedDistances) {
  run_with(GetParam(), [] {
    const FakeClock clock;
    Ticker ticker(10s);
    for (int i = 1; i <= 100; ++i) {
      ticker.wait();
      EXPECT_EQ(clock.elapsed(), i * 10s);
      sleep_for(std::chrono::seconds(i % 10));
    }
  });
}

TEST_P(TickerTest, DropsTicksForASlowReceiverAndDoesNotDrift) {
  run_with(GetParam(), [] {
    const FakeClock clock;
    Ticker ticker(10s);
    sleep_for(35s);
    ticker.wait();  // one of three
    EXPECT_EQ(clock.elapsed(), 35s);
    EXPECT_FALSE(ticker.try_wait());
    ticker.wait();
    EXPECT_EQ(clock.elapsed(), 40s);
  });
}

TEST_P(TickerTest, NoTickOfBeforeIsSeenAfterStopAndReset) {
  run_with(GetParam(), [] {
    FakeClock clock;
    Ticker ticker(10s);
    clock.advance(11s);
    ticker.reset(3s);
    EXPECT_FALSE(ticker.try_wait());
    ticker.wait();
    EXPECT_EQ(clock.elapsed(), 14s);
    clock.advance(4s);
    ticker.stop();
    clock.advance(1h);
    EXPECT_FALSE(ticker.try_wait());
    ticker.reset(2s);
    ticker.wait();
    EXPECT_EQ(clock.elapsed(), 1h + 20s);
    const auto [ctx, cancel] = with_timeout(Context::background(), 1s);
    EXPECT_FALSE(ticker.wait(ctx));
    EXPECT_TRUE(ticker.wait(Context::background()));
  });
}

class AfterFuncTest : public WithProcs {};
TUZA_WITH_PROCS(AfterFuncTest);

TEST_P(AfterFuncTest, RunsInAGoroutineOfItsOwn) {
  run_with(GetParam(), [] {
    FakeClock clock;
    int runs = 0;
    DelayedCall call = after_func(5s, [&] {
      EXPECT_EQ(clock.elapsed(), 5s);
      sleep_for(1s);  // it may park
      ++runs;
    });
    clock.advance(5s);
    EXPECT_EQ(runs, 0);
    EXPECT_FALSE(call.stop());  // it has started; stop() does not wait
    clock.advance(1s);
    EXPECT_EQ(runs, 1);
  });
}

TEST_P(AfterFuncTest, StopResetAndDetachDoWhatTheySay) {
  run_with(GetParam(), [] {
    FakeClock clock;
    std::atomic<int> runs{0};
    const auto count = [&runs] { ++runs; };
    DelayedCall stopped = after_func(1s, count);
    EXPECT_TRUE(stopped.stop());
    EXPECT_FALSE(stopped.stop());
    clock.advance(2s);
    EXPECT_EQ(runs, 0);
    EXPECT_FALSE(stopped.reset(1s));  // it was not pending, and is now
    EXPECT_TRUE(stopped.reset(2s));
    clock.advance(1s);
    EXPECT_EQ(runs, 0);
    clock.advance(1s);
    EXPECT_EQ(runs, 1);
    EXPECT_FALSE(stopped.reset(1s));  // again
    clock.advance(1s);
    EXPECT_EQ(runs, 2);
    {
      const DelayedCall dropped = after_func(1s, count);
    }
    after_func(1s, count).detach();
    DelayedCall moved = after_func(1s, count);
    DelayedCall to = std::move(moved);
    EXPECT_FALSE(moved.stop());
    clock.advance(1s);
    EXPECT_EQ(runs, 4);
    after_func(-1s, [] { goexit(); }).detach();
    clock.settle();
  });
}

TEST(TimerAllocation, NoneInSteadyState) {
  run_with(2, [] {
    Timer timer;
    Ticker ticker(1us);
    DelayedCall call = after_func(1h, [] {});
    for (int warm = 0; warm < 2; ++warm) {
      const std::uint64_t before = testing::allocations();
      for (int i = 0; i < 100; ++i) {
        timer.reset(1us);
        timer.wait();
        timer.reset(1h);
        timer.stop();
        ticker.wait();
        call.reset(1us);
        yield();
        call.reset(1h);
      }
      if (warm == 1) {
        EXPECT_EQ(testing::allocations(), before);
      }
    }
  });
}

// -- Misuse.

TEST(TimerDeathTest, StartingOneOutsideARuntimeIsAMistake) {
  Timer idle;
  EXPECT_FALSE(idle.stop());
  EXPECT_FALSE(idle.try_wait());
  EXPECT_DEATH(Timer(1s), "timer started outside tuza::run");
}

TEST(TimerDeathTest, ATickerNeedsAPeriod) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run([] { Ticker ticker(0s); }), "period of a Ticker must be positive");
}

TEST(TimerDeathTest, NobodyMayWaitForOneThatIsDestroyed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run([] {
                 auto timer = std::make_unique<Timer>();
                 go([waited = timer.get()] { waited->wait(); });
                 testing::wait_until_all_park();
                 timer.reset();
               }),
               "destroyed while goroutines wait for it");
}

// A timer may outlive the runtime in which it was started, and be reused in the next.
TEST(TimerRuntimes, ATimerOutlivesItsRuntime) {
  Timer pending, again, firing;
  run_with(1, [&] {
    pending.reset(1h);
    again.reset(1h);
    firing.reset(1us);
  });
  EXPECT_TRUE(pending.stop());
  EXPECT_FALSE(pending.stop());
  run_with(1, [&] {
    again.reset(1ms);
    again.wait();
    EXPECT_FALSE(again.try_wait());
  });
}

}  // namespace
}  // namespace tuza
