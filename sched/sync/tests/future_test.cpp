// Futures: results and exceptions arrive once, whichever side is first.
#include <tuza/sched/external.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/future.h>
#include <tuza/sched/sync/select.h>
#include <tuza/sched/sync/tests/counting_new.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using namespace testing;

class FutureTest : public WithProcs {};
TUZA_WITH_PROCS(FutureTest);

TEST_P(FutureTest, TheExample) {
  run_with(GetParam(), [] {
    Future<std::string> row = async([] { return std::string("row"); });
    EXPECT_EQ(std::move(row).get(), "row");
    Promise<int> promise;
    Future<int> answer = promise.future();
    go([promise = std::move(promise)]() mutable { promise.set_value(42); });
    EXPECT_EQ(answer.get(), 42);
  });
}

TEST_P(FutureTest, GetRefersOrMoves) {
  run_with(GetParam(), [] {
    auto made = async([] { return std::make_unique<int>(7); });
    EXPECT_EQ(*made.get(), 7);
    *made.get() = 8;
    EXPECT_TRUE(made.valid());
    EXPECT_TRUE(made.ready());
    const std::unique_ptr<int> taken = std::move(made).get();
    EXPECT_EQ(*taken, 8);
    EXPECT_FALSE(made.valid());
    Future<void> nothing = async([] {});
    nothing.get();
    nothing.get();
    std::move(nothing).get();
    EXPECT_FALSE(nothing.valid());
  });
}

TEST_P(FutureTest, APromiseThatIsAssignedAnewCanBeBroken) {
  run_with(GetParam(), [] {
    Future<int> second;
    {
      Promise<int> promise;
      Future<int> first = promise.future();
      promise.set_value(1);
      EXPECT_EQ(first.get(), 1);
      promise = Promise<int>();
      second = promise.future();
    }
    EXPECT_THROW(second.get(), std::future_error);
  });
}

TEST_P(FutureTest, ExceptionsArrive) {
  run_with(GetParam(), [] {
    Future<int> failed = async([]() -> int { throw std::runtime_error("no"); });
    EXPECT_THROW(failed.get(), std::runtime_error);
    EXPECT_THROW(failed.get(), std::runtime_error) << "each time";
    EXPECT_THROW(std::move(failed).get(), std::runtime_error);
    EXPECT_FALSE(failed.valid());
    EXPECT_THROW(async([] { throw 1; }).get(), int);
    Promise<int> promise;
    promise.set_exception(std::make_exception_ptr(std::logic_error("set")));
    EXPECT_THROW(promise.future().get(), std::logic_error);
  });
}

TEST_P(FutureTest, EndingWithoutAResultBreaksThePromise) {
  run_with(GetParam(), [] {
    Future<int> gone = async([]() -> int { goexit(); });
    EXPECT_THROW(gone.get(), std::future_error);
    Future<int> dropped = Promise<int>().future();
    EXPECT_THROW(dropped.get(), std::future_error);
  });
}

TEST_P(FutureTest, DroppedFuturesAreIgnored) {
  run_with(GetParam(), [] {
    auto owned = std::make_shared<int>(1);
    WaitGroup group;
    for (int i = 0; i < scaled(500); ++i) {
      group.add(2);
      auto slow = std::make_unique<Future<std::shared_ptr<int>>>(async([&group, owned] {
        yield();
        group.done();
        return owned;
      }));
      auto failing = async([&group] {
        group.done();
        throw std::runtime_error("nobody looks");
      });
      if (i % 2 == 0) yield();
    }
    group.wait();
    testing::yield_until([&] { return owned.use_count() == 1; });
  });
}

TEST_P(FutureTest, AContextEndsAWaitAndTheFutureStays) {
  run_with(GetParam(), [] {
    Promise<int> promise;
    Future<int> answer = promise.future();
    auto [ctx, cancel] = with_timeout(Context::background(), 1ms);
    Result<int> early = std::move(answer).get(ctx);
    ASSERT_FALSE(early);
    EXPECT_TRUE(early.error().timeout());
    EXPECT_FALSE(answer.wait(ctx));
    ASSERT_TRUE(answer.valid());
    promise.set_value(3);
    EXPECT_FALSE(answer.wait(ctx)) << "what has ended goes before what is there";
    EXPECT_EQ(std::move(answer).get(Context::background()).value(), 3);
    Future<void> nothing = async([] {});
    EXPECT_TRUE(std::move(nothing).get(Context::background()));
  });
}

TEST_P(FutureTest, ManyWaitForOneResult) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(300); ++round) {
      Promise<int> promise;
      Future<int> answer = promise.future();
      int written = 0;  // a plain int: TSan checks the ordering
      WaitGroup group;
      for (int i = 0; i < 5; ++i) {
        group.go([&] {
          answer.wait();
          EXPECT_EQ(written, 1);
        });
      }
      if (round % 2 == 0) yield();
      written = 1;
      promise.set_value(1);
      group.wait();
      EXPECT_EQ(answer.get(), 1);
    }
  });
}

TEST_P(FutureTest, ThreadsAreServedAndServe) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(200); ++round) {
      Promise<int> there, back;
      Future<int> question = there.future(), answer = back.future();
      std::thread thread([&, promise = ExternalWaker()] {
        back.set_value(std::move(question).get() + async([] { return 1; }).get());
      });
      there.set_value(round);
      EXPECT_EQ(answer.get(), round + 1);
      thread.join();
    }
  });
}

TEST(FutureTest, PromisesNeedNoRuntime) {
  Promise<std::string> promise;
  Future<std::string> text = promise.future();
  std::thread thread([promise = std::move(promise)]() mutable { promise.set_value(3, 'x'); });
  EXPECT_EQ(text.get(), "xxx");
  thread.join();
}

TEST_P(FutureTest, TreesOfFuturesAddUp) {
  run_with(GetParam(), [] {
    std::function<int(int)> sum = [&](int depth) {
      if (depth == 0) return 1;
      auto left = async([&, depth] { return sum(depth - 1); });
      auto right = async([&, depth] { return sum(depth - 1); });
      return std::move(left).get() + std::move(right).get();
    };
    EXPECT_EQ(sum(8), 256);
  });
}

TEST_P(FutureTest, NothingIsAllocatedOnTheWay) {
  if (!testing::kCountsAllocations) GTEST_SKIP();
  run_with(GetParam(), [] {
    std::uint64_t before = 0;
    for (int i = 0; i < 1'200; ++i) {
      if (i == 200) before = testing::allocations();
      EXPECT_EQ(async([i] { return i; }).get(), i);
    }
    // One state for each P that has none yet; not one for each round.
    EXPECT_LE(testing::allocations() - before, 8u);
  });
}

TEST(FutureDeathTest, MisuseIsCaught) {
  EXPECT_DEATH((void)Future<int>().get(), "use of an empty Future");
  EXPECT_DEATH(
      {
        Promise<int> promise;
        promise.set_value(1);
        promise.set_value(2);
      },
      "Promise: result set twice");
  EXPECT_DEATH(
      {
        Promise<int> promise;
        (void)promise.future();
        (void)promise.future();
      },
      "future\\(\\) called twice");
}

TEST_P(FutureTest, ResultsAreCasesOfASelect) {
  run_with(GetParam(), [] {
    Future<int> never = Promise<int>().future();  // broken at once: ready, with an exception
    never.wait();
    Promise<int> promise;
    Future<int> answer = promise.future();
    go([promise = std::move(promise)]() mutable { promise.set_value(42); });
    int got = 0;
    const std::size_t chosen = select(on_ready(answer, [&] { got = answer.get(); }));
    EXPECT_EQ(chosen, 0u);
    EXPECT_EQ(got, 42);
    EXPECT_EQ(select(on_ready(never), otherwise()), 0u);
  });
}

}  // namespace
}  // namespace tuza
