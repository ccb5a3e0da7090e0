// WaitGroup and Latch: their guarantees about order, release and lifetime.
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/latch.h>
#include <tuza/sched/sync/tests/locks_testing.h>
#include <tuza/sched/sync/wait_group.h>

#include <memory>
#include <stdexcept>

namespace tuza {
namespace {

using namespace testing;

class WaitGroupTest : public WithProcs {};
TUZA_WITH_PROCS(WaitGroupTest);

TEST_P(WaitGroupTest, MakesTheWorkOfOthersVisible) {
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

TEST_P(WaitGroupTest, MayBeDestroyedAsSoonAsWaitReturns) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(20'000); ++round) {
      auto group = std::make_unique<WaitGroup>();
      group->go([] {});
      group->wait();
      group.reset();  // ASan sees a done() that still touches it
    }
  });
}

// A wait that is given up at the moment the counter reaches zero must not allow the group to be destroyed
// under the done() that is about to release the wait.
TEST_P(WaitGroupTest, MayBeDestroyedAsSoonAsTheWaitAfterOneGivenUpReturns) {
  run_with(GetParam(), [] {
    int gave_up = 0;
    for (int round = 0; round < scaled(5'000); ++round) {
      auto group = std::make_unique<WaitGroup>();
      auto [ctx, cancel] = with_cancel(Context());
      WaitGroup canceller;
      group->add(1);
      canceller.go([&cancel = cancel] { cancel(); });
      canceller.go([&] { group->done(); });
      if (!group->wait(ctx)) {
        ++gave_up;
        group->wait();
      }
      group.reset();
      canceller.wait();
    }
    EXPECT_LE(gave_up, scaled(5'000));
  });
}

TEST_P(WaitGroupTest, ReleasesEveryWaiter) {
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

TEST_P(WaitGroupTest, ThreadsWaitForGoroutinesAndTheOtherWayRound) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(100) + 5; ++round) {
      WaitGroup begin, end;
      int written = 0;
      begin.add(1);
      end.add(2);
      Threads threads;
      for (int i = 0; i < 2; ++i) {
        threads.start([&] {
          begin.wait();
          EXPECT_EQ(written, 1);
          end.done();
        });
      }
      written = 1;
      begin.done();
      end.wait();
    }
  });
}

TEST_P(WaitGroupTest, IsReusedRoundByRound) {
  run_with(GetParam(), [] {
    WaitGroup group;
    int total = 0;
    for (int round = 0; round < scaled(1'000); ++round) {
      std::atomic<int> ran = 0;
      for (int i = 0; i < 3; ++i) group.go([&] { ++ran; });
      group.wait();
      EXPECT_EQ(ran, 3);
      total += ran;
    }
    EXPECT_EQ(total, 3 * scaled(1'000));
  });
}

TEST_P(WaitGroupTest, AContextEndsOneWaitAndNotTheOthers) {
  run_with(GetParam(), [] {
    WaitGroup group;
    group.add(1);
    auto [ctx, cancel] = with_cancel(Context());
    std::atomic<int> gave_up = 0, served = 0;
    WaitGroup waiters;
    for (int i = 0; i < 4; ++i) {
      waiters.go([&, &ctx = ctx] { gave_up += group.wait(ctx) ? 0 : 1; });
      waiters.go([&] {
        group.wait();
        ++served;
      });
    }
    yield();
    cancel();
    testing::yield_until([&] { return gave_up == 4; });
    EXPECT_EQ(served, 0);
    group.done();
    waiters.wait();
    EXPECT_EQ(served, 4);
    EXPECT_FALSE(group.wait(ctx));  // an ended context is an error even at zero
  });
}

TEST_P(WaitGroupTest, GoCountsAGoroutineThatLeavesByGoexit) {
  run_with(GetParam(), [] {
    WaitGroup group;
    for (int i = 0; i < 10; ++i) group.go([] { goexit(); });
    group.wait();
  });
}

class LatchTest : public WithProcs {};
TUZA_WITH_PROCS(LatchTest);

TEST_P(LatchTest, ReleasesAllWaitersAtZeroAndNotBefore) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(500); ++round) {
      auto latch = std::make_unique<Latch>(3);
      int parts[3] = {};
      WaitGroup group;
      for (int& part : parts) {
        group.go([&] {
          part = 1;
          latch->arrive_and_wait();
          for (const int seen : parts) EXPECT_EQ(seen, 1);
        });
      }
      group.wait();
      EXPECT_TRUE(latch->try_wait());
    }
  });
}

TEST_P(LatchTest, MayBeDestroyedAsSoonAsWaitReturns) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(5'000); ++round) {
      auto latch = std::make_unique<Latch>(1);
      WaitGroup group;
      group.go([&] { latch->count_down(); });
      if (round % 2 == 0) testing::yield_until([&] { return latch->try_wait(); });
      latch->wait();
      latch.reset();
      group.wait();
    }
  });
}

TEST_P(LatchTest, AContextEndsTheWait) {
  run_with(GetParam(), [] {
    Latch latch(1);
    auto [ctx, cancel] = with_cancel(Context());
    WaitGroup group;
    group.go([&, &ctx = ctx] { EXPECT_FALSE(latch.wait(ctx)); });
    yield();
    cancel();
    group.wait();
    EXPECT_FALSE(latch.try_wait());
    latch.count_down();
    latch.wait();
  });
}

// When wait() returns, the captures are destroyed: they may refer to what the caller destroys next.
TEST_P(WaitGroupTest, WhatWasCapturedIsDestroyedBeforeWaitReturns) {
  struct Captured {
    explicit Captured(std::atomic<int>& count) : alive(&count) { ++*alive; }
    Captured(Captured&& other) noexcept : alive(std::exchange(other.alive, nullptr)) {}
    ~Captured() {
      if (alive == nullptr) return;
      yield();  // as long as a destructor may take
      --*alive;
    }
    std::atomic<int>* alive;
  };
  run_with(GetParam(), [] {
    for (int round = 0; round < 20; ++round) {
      std::atomic<int> alive{0};
      WaitGroup group;
      for (int i = 0; i < 50; ++i) group.go([captured = Captured(alive)] { (void)captured; });
      group.wait();
      EXPECT_EQ(alive, 0);
    }
  });
}

TEST_P(WaitGroupTest, AGoroutineThatCannotBeStartedIsNoMember) {
  run_with(GetParam(), [] {
    WaitGroup group;
    int called = 0;
    ASSERT_TRUE(group.try_go({.name = "member"}, [&called] { ++called; }));
    group.wait();
    EXPECT_EQ(called, 1);
    const auto kept = std::make_shared<int>();
    const Result<void> refused = group.try_go({.stack_bytes = 2 * kStackBytesMax}, [kept] {});
    EXPECT_TRUE(refused.error().is(std::errc::invalid_argument));
    EXPECT_EQ(kept.use_count(), 1);
    group.wait();
  });
}

TEST(WaitGroupOutside, StartsNothing) {
  WaitGroup group;
  EXPECT_TRUE(group.try_go({}, [] {}).error().is(Errc::kNotRunning));
  group.wait();
}

}  // namespace
}  // namespace tuza
