// Contexts: facts from the documented semantics of Go's context, and races of everything that may end a
// context.
#include <tuza/sched/external.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/detail/event.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using namespace testing;

class ContextTest : public WithProcs {};
TUZA_WITH_PROCS(ContextTest);

const ContextKey<std::string> kUser{"user"};
const ContextKey<std::string> kTwin{"user"};
const ContextKey<int> kNumber{"number"};

Error why(int number) { return Error::from_errno(number, "test"); }

TEST(ContextTest, TheBackgroundNeverEndsAndKnowsNothing) {
  const Context ctx = Context::background();
  EXPECT_FALSE(ctx.done());
  EXPECT_FALSE(ctx.cause().code());
  EXPECT_TRUE(ctx.check());
  EXPECT_EQ(ctx.event(), nullptr);
  EXPECT_FALSE(ctx.deadline());
  EXPECT_EQ(ctx.value(kUser), nullptr);
}

TEST(ContextTest, CancellingNeedsNoRuntime) {
  auto [ctx, cancel] = with_cancel(Context::background());
  EXPECT_FALSE(ctx.done());
  std::thread waiter([ctx = ctx] { ctx.wait(); });
  cancel();
  waiter.join();
  EXPECT_TRUE(ctx.done());
  EXPECT_TRUE(ctx.cause().cancelled());
  EXPECT_FALSE(ctx.check());
  EXPECT_EQ(ctx.check().error().message(), "context: context cancelled");
}

TEST(ContextTest, TheFirstCauseStays) {
  auto [ctx, cancel] = with_cancel(Context::background());
  cancel(why(ENOENT));
  cancel(why(EIO));
  cancel();
  EXPECT_TRUE(ctx.cause().is(std::errc::no_such_file_or_directory));
}

TEST(ContextTest, AnEndGoesDownAndNotUp) {
  auto [root, cancel_root] = with_cancel(Context::background());
  auto [child, cancel_child] = with_cancel(root);
  auto [grandchild, cancel_grandchild] = with_cancel(with_value(child, kNumber, 1));
  auto [sibling, cancel_sibling] = with_cancel(root);
  cancel_child(why(ENOENT));
  EXPECT_FALSE(root.done());
  EXPECT_FALSE(sibling.done());
  EXPECT_TRUE(child.done());
  EXPECT_TRUE(grandchild.done());
  EXPECT_TRUE(grandchild.cause().is(std::errc::no_such_file_or_directory));
  cancel_root(why(EIO));
  EXPECT_TRUE(sibling.cause().is(std::errc::io_error));
  EXPECT_TRUE(grandchild.cause().is(std::errc::no_such_file_or_directory));
  auto [late, cancel_late] = with_cancel(root);
  EXPECT_TRUE(late.done());
  EXPECT_TRUE(late.cause().is(std::errc::io_error));
}

TEST(ContextTest, ACancellerEndsItsContextWhenItGoes) {
  Context outlives;
  {
    auto [ctx, cancel] = with_cancel(Context::background());
    outlives = ctx;
  }
  EXPECT_TRUE(outlives.cause().cancelled());
  Canceller kept;
  {
    auto [ctx, cancel] = with_cancel(Context::background());
    outlives = ctx;
    kept = std::move(cancel);
  }
  EXPECT_FALSE(outlives.done());
  kept = Canceller();
  EXPECT_TRUE(outlives.done());
  {
    auto [ctx, cancel] = with_cancel(Context::background());
    outlives = ctx;
    cancel.detach();
    cancel();
  }
  EXPECT_FALSE(outlives.done());
}

TEST(ContextTest, ValuesAreFoundByKeyNearestFirst) {
  const Context one = with_value(Context::background(), kUser, "ann");
  const Context two = with_value(one, kNumber, 7);
  auto [three, cancel] = with_cancel(two);
  const Context four = with_value(three, kUser, "bob");
  EXPECT_EQ(*one.value(kUser), "ann");
  EXPECT_EQ(one.value(kNumber), nullptr);
  EXPECT_EQ(*three.value(kUser), "ann");
  EXPECT_EQ(*four.value(kUser), "bob");
  EXPECT_EQ(*four.value(kNumber), 7);
  EXPECT_EQ(four.value(kTwin), nullptr) << "two keys of one name are two keys";
  cancel();
  EXPECT_TRUE(four.done());
  EXPECT_EQ(four.event(), three.event());
}

TEST(ContextTest, WithoutCancelKeepsTheValuesOnly) {
  auto [ctx, cancel] = with_cancel(with_value(Context::background(), kUser, "ann"));
  const Context free = without_cancel(ctx);
  auto [below, cancel_below] = with_cancel(free);
  cancel();
  EXPECT_FALSE(free.done());
  EXPECT_FALSE(free.deadline());
  EXPECT_FALSE(below.done());
  EXPECT_EQ(*below.value(kUser), "ann");
}

// The depth of a tree must not consume stack, neither when the tree ends nor when it is freed.
TEST(ContextTest, DeepChainsEndAndGo) {
  constexpr int kDepth = scaled(200'000);
  auto [root, cancel] = with_cancel(Context::background());
  Context deepest = root;
  std::vector<Canceller> cancellers;
  for (int i = 0; i < kDepth; ++i) {
    auto [child, cancel_child] = with_cancel(deepest);
    deepest = child;
    cancellers.push_back(std::move(cancel_child));
  }
  cancel(why(EIO));
  EXPECT_TRUE(deepest.cause().is(std::errc::io_error));
  cancellers.clear();
}

TEST(ContextTest, ChildrenComeAndGoInAnyOrder) {
  auto [root, cancel] = with_cancel(Context::background());
  std::vector<CancellableContext> children;
  for (int i = 0; i < 100; ++i) children.push_back(with_cancel(root));
  for (std::size_t i = 0; i < 100; i += 3) children[i].cancel();
  for (std::size_t i = 1; i < 100; i += 3) children[i] = CancellableContext{};
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(children[i].ctx().done(), i % 3 == 0) << i;
  cancel();
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(children[i].ctx().done(), i % 3 != 1) << i;
}

TEST_P(ContextTest, DeadlinesEndContexts) {
  run_with(GetParam(), [] {
    auto [ctx, cancel] = with_timeout(Context::background(), 1ms);
    ASSERT_TRUE(ctx.deadline());
    ctx.wait();
    EXPECT_GE(std::chrono::steady_clock::now(), *ctx.deadline());
    EXPECT_TRUE(ctx.cause().timeout());
    auto [given, cancel_given] = with_timeout(Context::background(), 1ms, why(ETIME));
    given.wait();
    EXPECT_EQ(given.cause().code().value(), ETIME);
  });
}

TEST_P(ContextTest, TheEarlierDeadlineCounts) {
  run_with(GetParam(), [] {
    auto [early, cancel_early] = with_timeout(Context::background(), 1ms, why(EIO));
    auto [late, cancel_late] = with_timeout(early, 1h);
    EXPECT_EQ(late.deadline(), early.deadline());
    late.wait();
    EXPECT_TRUE(late.cause().is(std::errc::io_error));
    auto [far, cancel_far] = with_timeout(Context::background(), 1h);
    auto [near, cancel_near] = with_timeout(far, 1ms);
    EXPECT_LT(near.deadline(), far.deadline());
    near.wait();
    EXPECT_FALSE(far.done());
    EXPECT_FALSE(without_cancel(far).deadline());
  });
}

TEST_P(ContextTest, ADeadlineInThePastEndsAtOnce) {
  run_with(GetParam(), [] {
    auto [ctx, cancel] = with_timeout(Context::background(), -1s);
    EXPECT_TRUE(ctx.cause().timeout());
    auto [zero, cancel_zero] = with_deadline(Context::background(), Context::TimePoint());
    EXPECT_TRUE(zero.cause().timeout());
    auto [never, cancel_never] = with_timeout(Context::background(), std::chrono::nanoseconds::max());
    EXPECT_FALSE(never.done());
  });
}

TEST_P(ContextTest, ADeadlineGoesDownTheTree) {
  run_with(GetParam(), [] {
    auto [ctx, cancel] = with_timeout(Context::background(), 1ms);
    auto [child, cancel_child] = with_cancel(ctx);
    int ran = 0;
    WaitGroup group;
    group.add(1);
    auto after = when_done(child, [&] {
      ran = 1;
      group.done();
    });
    child.wait();
    EXPECT_TRUE(child.cause().timeout());
    group.wait();
    EXPECT_EQ(ran, 1);
  });
}

TEST_P(ContextTest, WhatWasDoneBeforeTheEndIsSeenAfterIt) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(500); ++round) {
      auto [ctx, cancel] = with_cancel(Context::background());
      auto [child, cancel_child] = with_cancel(ctx);
      int written = 0;  // a plain int: TSan checks the ordering
      WaitGroup group;
      for (int i = 0; i < 4; ++i) {
        group.go([&written, ctx = i % 2 == 0 ? ctx : child] {
          ctx.wait();
          EXPECT_EQ(written, 1);
          EXPECT_TRUE(ctx.cause().cancelled());
        });
      }
      if (round % 2 == 0) yield();
      written = 1;
      cancel();
      EXPECT_TRUE(child.done());
      group.wait();
    }
  });
}

TEST_P(ContextTest, WhenDoneRunsOnceInItsOwnGoroutine) {
  run_with(GetParam(), [] {
    auto [ctx, cancel] = with_cancel(Context::background());
    std::atomic<int> runs{0};
    const auto id = goroutine_id();
    auto count = [&] {
      EXPECT_NE(goroutine_id(), id);
      EXPECT_TRUE(ctx.done());
      ++runs;
    };
    auto first = when_done(ctx, count);
    auto second = when_done(ctx, count);
    auto dropped = when_done(ctx, [] { FAIL() << "was stopped"; });
    EXPECT_TRUE(dropped.stop());
    EXPECT_FALSE(dropped.stop()) << "stopped before";
    {
      auto scoped = when_done(ctx, [] { FAIL() << "its handle has gone"; });
    }
    when_done(ctx, count).detach();
    cancel();
    EXPECT_FALSE(first.stop()) << "it has been started";
    yield_until([&] { return runs == 3; });
    auto late = when_done(ctx, count);
    EXPECT_FALSE(late.stop());
    yield_until([&] { return runs == 4; });
    auto never = when_done(Context::background(), [] { FAIL(); });
    EXPECT_TRUE(never.stop());
  });
}

TEST_P(ContextTest, FunctionsOfForgottenContextsAreDropped) {
  run_with(GetParam(), [] {
    auto owned = std::make_shared<int>(1);
    {
      auto [ctx, cancel] = with_cancel(Context::background());
      cancel.detach();
      when_done(ctx, [owned] { FAIL() << "nobody ends it"; }).detach();
      EXPECT_EQ(owned.use_count(), 2);
    }
    EXPECT_EQ(owned.use_count(), 1);
    auto [ctx, cancel] = with_cancel(Context::background());
    auto stopped = when_done(ctx, [owned] {});
    EXPECT_TRUE(stopped.stop());
    EXPECT_EQ(owned.use_count(), 1) << "stop() lets go of what the function holds";
  });
}

// Everything that may end, use or drop a context, at once: one cause wins, all users see the same cause, each
// function runs or is stopped, and nothing is leaked (ASan).
TEST_P(ContextTest, RacesHaveOneCause) {
  run_with(GetParam(), [] {
    int timeouts = 0, cancels = 0;
    for (int round = 0; round < scaled(2'000); ++round) {
      auto made = std::make_unique<CancellableContext>(
          with_timeout(Context::background(), std::chrono::microseconds(round % 7)));
      Context ctx = made->ctx();
      auto [child, cancel_child] = with_cancel(ctx);
      std::atomic<int> ran{0};
      int stopped = 0;
      std::error_code seen_below;
      WaitGroup group;
      group.go([&] { made->cancel(why(EIO)); });
      group.go([&, child = child] {
        child.wait();
        seen_below = child.cause().code();
      });
      group.go([&] {
        auto after = when_done(ctx, [&] { ++ran; });
        if (round % 2 == 0) yield();
        stopped = after.stop() ? 1 : 0;
      });
      group.go([&ctx, round] {
        for (int i = 0; i < 3; ++i) {
          auto [mine, cancel_mine] = with_timeout(ctx, std::chrono::microseconds(round % 5));
          if (i == 1) mine.wait();
        }
      });
      group.wait();
      made.reset();
      yield_until([&] { return ran + stopped == 1; });
      EXPECT_EQ(seen_below, ctx.cause().code());
      ++(ctx.cause().timeout() ? timeouts : cancels);
    }
    EXPECT_EQ(timeouts + cancels, scaled(2'000));
  });
}

TEST_P(ContextTest, ThreadsCancelAndWait) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(200); ++round) {
      auto [ctx, cancel] = with_cancel(Context::background());
      auto [back, cancel_back] = with_cancel(Context::background());
      std::thread thread([&, promise = ExternalWaker()] {
        auto [mine, cancel_mine] = with_timeout(ctx, 1h);
        mine.wait();
        cancel_back(mine.cause());
      });
      cancel(why(EIO));
      back.wait();
      EXPECT_TRUE(back.cause().is(std::errc::io_error));
      thread.join();
    }
  });
}

// A deadline that never came must not leak memory (ASan) or fire when its runtime has ended.
TEST(ContextTest, ContextsMayOutliveTheirRuntime) {
  CancellableContext kept;
  run_with(2, [&] { kept = with_timeout(Context::background(), 1h); });
  EXPECT_FALSE(kept.ctx().done());
  run_with(2, [&] { kept.cancel(why(EIO)); });
  EXPECT_TRUE(kept.ctx().cause().is(std::errc::io_error));
}

TEST(ContextDeathTest, DeadlinesNeedARuntime) {
  EXPECT_DEATH((void)with_timeout(Context::background(), 1s), "a context with a deadline outside tuza::run");
}

// Functions registered with when_done() do not run then, and nothing else happens.
TEST(ContextTest, AThreadMayCancelWhileTheRuntimeEnds) {
  for (int round = 0; round < scaled(200); ++round) {
    std::thread canceller;
    std::atomic<bool> go_on{false};
    run([&] {
      auto made = std::make_shared<CancellableContext>(with_cancel(Context::background()));
      when_done(made->ctx(), [] {}).detach();
      canceller = std::thread([&go_on, made] {
        while (!go_on) {
        }
        made->cancel();
      });
      go_on = true;
    });
    canceller.join();
  }
}

TEST(ContextTest, AContextAndItsCancellerStayTogetherOrAreBound) {
  CancellableContext made = with_cancel(Context::background());
  auto& [ctx, cancel] = made;
  EXPECT_EQ(&ctx, &made.ctx());
  EXPECT_EQ(&cancel, &made.canceller());
  CancellableContext moved = std::move(made);
  EXPECT_FALSE(moved.ctx().done());
  moved.cancel(why(EIO));
  EXPECT_TRUE(moved.ctx().cause().is(std::errc::io_error));
  auto [taken, cancel_taken] = std::move(moved);
  EXPECT_TRUE(taken.done());

  auto detached = with_cancel(Context::background());
  detached.canceller().detach();
  detached.cancel();
  EXPECT_FALSE(detached.ctx().done());
  const auto [constant, cancel_constant] = with_cancel(Context::background());
  cancel_constant();
  EXPECT_TRUE(constant.done());
}

}  // namespace
}  // namespace tuza
