// Timers that are stopped, moved and destroyed while they fire, by goroutines and threads.
#include <tuza/sched/external.h>
#include <tuza/sched/go.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/after_func.h>
#include <tuza/sched/time/ticker.h>
#include <tuza/sched/time/timer.h>

#include <memory>
#include <thread>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using namespace testing;

class TimerRace : public WithProcs {};
TUZA_WITH_PROCS(TimerRace);

// A delay about as long as it takes to reach the next statement.
std::chrono::nanoseconds soon(int round) { return std::chrono::nanoseconds((round * 7919) % 40'000); }

TEST_P(TimerRace, NoStaleFireAfterStopOrReset) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(3'000); ++round) {
      Timer timer(soon(round));
      if (round % 4 != 0) yield();
      if (round % 2 == 0) {
        timer.stop();
        yield();
        ASSERT_FALSE(timer.try_wait()) << round;
        ASSERT_FALSE(timer.stop()) << round;
      } else {
        timer.reset(1h);
        yield();
        ASSERT_FALSE(timer.try_wait()) << round;
        ASSERT_TRUE(timer.stop()) << round;
      }
    }
  });
}

TEST_P(TimerRace, NeverEarlyHoweverOftenItIsMoved) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(1'000); ++round) {
      Timer timer(soon(round));
      for (int i = 0; i < round % 5; ++i) {
        timer.reset(soon(round + i));
        if (i % 2 == 0) yield();
      }
      const auto before = std::chrono::steady_clock::now();
      timer.reset(20us);
      timer.wait();
      ASSERT_GE(std::chrono::steady_clock::now() - before, 20us);
      ASSERT_FALSE(timer.try_wait());
    }
  });
}

TEST_P(TimerRace, EachResetIsReceivedAtMostOnce) {
  run_with(GetParam(), [] {
    Timer timer;
    std::atomic<int> received{0};
    int pending = 0;
    auto [ctx, cancel] = with_cancel(Context::background());
    WaitGroup group;
    for (int i = 0; i < 3; ++i) {
      group.go([&, ctx = ctx] {
        while (timer.wait(ctx)) received.fetch_add(1);
      });
    }
    const int rounds = scaled(3'000);
    for (int round = 0; round < rounds; ++round) {
      pending += timer.reset(soon(round)) ? 1 : 0;
      yield();
    }
    pending += timer.stop() ? 1 : 0;
    cancel();
    group.wait();
    // Each arming ends in one of two ways: its fire is received, or the next call withdraws it.
    EXPECT_EQ(received.load() + pending, rounds);
  });
}

TEST_P(TimerRace, MayBeDestroyedWhileItFires) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(3'000); ++round) {
      auto timer = std::make_unique<Timer>(soon(round));
      auto ticker = std::make_unique<Ticker>(1us + soon(round));
      int runs = 0;
      {
        DelayedCall call = after_func(soon(round), [run = std::make_unique<int>(0)] { ++*run; });
        if (round % 3 == 0) yield();
        if (round % 2 == 0) call.reset(soon(round + 1));
      }
      if (round % 5 == 0) yield();
      timer.reset();
      ticker.reset();
      ASSERT_EQ(runs, 0);
    }
  });
}

TEST_P(TimerRace, ThreadsAndGoroutinesMoveWhatOthersWaitFor) {
  run_with(GetParam(), [] {
    Timer timer;
    Ticker ticker(100us);
    std::atomic<bool> finished{false};
    std::thread thread([&, promise = ExternalWaker()] {
      for (int i = 0; !finished.load(); ++i) {
        timer.reset(soon(i));
        if (i % 3 == 0) timer.stop();
        if (i % 50 == 0) ticker.reset(50us + soon(i));
        std::this_thread::sleep_for(std::chrono::microseconds(i % 30));
      }
      timer.reset(0s);
    });
    WaitGroup group;
    for (int i = 0; i < scaled(300); ++i) {
      timer.wait();
      ticker.wait();
    }
    finished = true;
    thread.join();
    timer.stop();
  });
}

TEST_P(TimerRace, AThreadWaitsToo) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(100); ++round) {
      Timer timer;
      std::thread thread([&, promise = ExternalWaker()] {
        const auto began = std::chrono::steady_clock::now();
        timer.reset(100us);
        timer.wait();
        EXPECT_GE(std::chrono::steady_clock::now() - began, 100us);
      });
      thread.join();
    }
  });
}

// Written before reset(), read after the fire: plain ints, for TSan.
TEST_P(TimerRace, WhatWasDoneBeforeResetIsSeenByTheReceiver) {
  run_with(GetParam(), [] {
    Timer timer;
    int written = 0, seen = 0;
    for (int round = 1; round <= scaled(500); ++round) {
      written = round;
      const DelayedCall call = after_func(0s, [&] {
        seen = written;
        timer.reset(1us);
      });
      timer.wait();
      ASSERT_EQ(seen, round);
    }
  });
}

}  // namespace
}  // namespace tuza
