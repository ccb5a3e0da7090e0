// Groups and scopes: all their goroutines have ended when the owner continues, and the owner gets the first
// failure.
#include <tuza/sched/log.h>
#include <tuza/sched/sync/error_group.h>
#include <tuza/sched/sync/scope.h>
#include <tuza/sched/tests/testing.h>

#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using namespace testing;

Error failure(int number) { return Error::from_errno(number, "test"); }

class ErrorGroupTest : public WithProcs {};
TUZA_WITH_PROCS(ErrorGroupTest);

TEST_P(ErrorGroupTest, AllGoWell) {
  run_with(GetParam(), [] {
    ErrorGroup group;
    int sum[10] = {};  // plain ints: TSan checks the ordering
    for (int i = 0; i < 10; ++i) {
      if (i % 2 == 0) {
        group.go([&sum, i] { sum[i] = i; });
      } else {
        group.go([&sum, i]() -> Result<void> {
          yield();
          sum[i] = i;
          return {};
        });
      }
    }
    EXPECT_FALSE(group.context().done());
    EXPECT_TRUE(group.wait());
    EXPECT_TRUE(group.context().cause().cancelled()) << "the context ends with the wait";
    for (int i = 0; i < 10; ++i) EXPECT_EQ(sum[i], i);
  });
}

TEST_P(ErrorGroupTest, TheFirstErrorStopsTheOthersAndComesOut) {
  run_with(GetParam(), [] {
    ErrorGroup group;
    std::atomic<int> stopped{0};
    for (int i = 0; i < 5; ++i) {
      group.go([&, ctx = group.context()]() -> Result<void> {
        ctx.wait();
        EXPECT_TRUE(ctx.cause().is(std::errc::io_error));
        ++stopped;
        return std::unexpected(failure(ENOENT));
      });
    }
    group.go([]() -> Result<void> { return std::unexpected(failure(EIO)); });
    const Result<void> result = group.wait();
    ASSERT_FALSE(result);
    EXPECT_TRUE(result.error().is(std::errc::io_error));
    EXPECT_EQ(stopped, 5);
  });
}

TEST_P(ErrorGroupTest, AnExceptionComesOutOfWait) {
  run_with(GetParam(), [] {
    ErrorGroup group;
    group.go([ctx = group.context()]() -> Result<void> {
      ctx.wait();
      EXPECT_TRUE(ctx.cause().cancelled());
      return std::unexpected(ctx.cause());
    });
    group.go([] { throw std::runtime_error("first"); });
    EXPECT_THROW((void)group.wait(), std::runtime_error);
  });
}

TEST_P(ErrorGroupTest, TheLimitHolds) {
  run_with(GetParam(), [] {
    constexpr int kLimit = 3;
    ErrorGroup group;
    group.set_limit(kLimit);
    std::atomic<int> running{0}, ran{0};
    for (int i = 0; i < scaled(300) + 10; ++i) {
      group.go([&] {
        EXPECT_LE(++running, kLimit);
        yield();
        --running;
        ++ran;
      });
    }
    EXPECT_TRUE(group.wait());
    EXPECT_EQ(ran, scaled(300) + 10);
  });
}

TEST_P(ErrorGroupTest, TryGoStartsWhatTheLimitAllows) {
  run_with(GetParam(), [] {
    ErrorGroup group;
    group.set_limit(0);
    EXPECT_FALSE(group.try_go([] { FAIL(); }));
    group.set_limit(1);
    auto [ctx, cancel] = with_cancel(Context::background());
    EXPECT_TRUE(group.try_go([ctx = ctx] { ctx.wait(); }));
    auto kept = std::make_unique<int>(1);
    EXPECT_FALSE(group.try_go([kept = std::move(kept)] {}));
    cancel();
    yield_until([&] { return group.try_go([] {}); });
    EXPECT_TRUE(group.wait());
    group.set_limit(-1);
    EXPECT_TRUE(group.try_go([] {}));
    EXPECT_TRUE(group.wait());
  });
}

TEST_P(ErrorGroupTest, AContextEndsTheWaitNotTheGoroutines) {
  run_with(GetParam(), [] {
    auto [ctx, cancel] = with_timeout(Context::background(), 1ms);
    ErrorGroup group;
    group.go([&] { group.context().wait(); });
    const Result<void> result = group.wait(ctx);
    ASSERT_FALSE(result);
    EXPECT_TRUE(result.error().timeout());
    EXPECT_FALSE(group.context().done());
    group.cancel();
    EXPECT_TRUE(group.wait());
  });
}

TEST_P(ErrorGroupTest, ItEndsWithItsParentAndJoinsWhenItGoes) {
  run_with(GetParam(), [] {
    auto owned = std::make_shared<int>(0);
    auto [ctx, cancel] = with_cancel(Context::background());
    {
      ErrorGroup child(ctx), dropped;
      child.go([&child, owned] { child.context().wait(); });
      dropped.go([&dropped, owned] { dropped.context().wait(); });
      dropped.go([] { throw std::runtime_error("lost"); });
      cancel(failure(EIO));
      EXPECT_TRUE(child.wait());
      EXPECT_TRUE(child.context().cause().is(std::errc::io_error));
    }
    EXPECT_EQ(owned.use_count(), 1) << "what was captured is gone before the group";
  });
}

TEST_P(ErrorGroupTest, GoexitIsNoFailure) {
  run_with(GetParam(), [] {
    ErrorGroup group;
    group.set_limit(1);
    group.go([] { goexit(); });
    group.go([] {});
    EXPECT_TRUE(group.wait());
  });
}

std::atomic<int> logged = 0;
void count_dropped_failures(LogLevel level, std::string_view line) {
  logged += level == LogLevel::kWarning &&
            line.ends_with("destroyed without wait(), after: test: Input/output error");
}

TEST(ErrorGroupLog, NamesAFailureThatNobodyHasWaitedFor) {
  set_log_sink(&count_dropped_failures);
  run_with(2, [] {
    const auto fails = []() -> Result<void> { return std::unexpected(failure(EIO)); };
    {
      ErrorGroup group;
      group.go(fails);
      EXPECT_FALSE(group.wait());
    }
    {  // what follows from the end of the context tells nothing
      ErrorGroup group;
      group.cancel();
      group.go(fails);
    }
    try {  // the exception tells more
      ErrorGroup group;
      group.go(fails);
      group.context().wait();
      throw 1;
    } catch (int) {
    }
    EXPECT_EQ(logged, 0);
    ErrorGroup group;
    group.go(fails);
    group.context().wait();
  });
  set_log_sink(nullptr);
  EXPECT_EQ(logged, 1);
}

TEST(ErrorGroupDeathTest, TheLimitIsSetWhileNobodyRuns) {
  EXPECT_DEATH(run_with(1,
                        [] {
                          ErrorGroup group;
                          group.go([] { sleep_for(1h); });
                          group.set_limit(1);
                        }),
               "set_limit\\(\\) while goroutines of the group run");
}

class ScopeTest : public WithProcs {};
TUZA_WITH_PROCS(ScopeTest);

TEST_P(ScopeTest, TheBlockWaitsForItsGoroutines) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(300); ++round) {
      int left = 0, right = 0;  // plain ints: TSan checks the ordering
      {
        Scope scope;
        scope.go([&] { left = 1; });
        scope.go([&] {
          scope.go([&] { right = 2; });  // from inside
          yield();
        });
      }
      EXPECT_EQ(left + right, 3);
    }
  });
}

TEST_P(ScopeTest, TheFirstExceptionOfAChildComesOut) {
  run_with(GetParam(), [] {
    int stopped = 0;
    const auto block = [&] {
      Scope scope;
      scope.go([&, ctx = scope.context()] {
        ctx.wait();
        stopped = 1;
        throw std::logic_error("dropped: the second");
      });
      scope.go([] { throw std::runtime_error("first"); });
    };
    EXPECT_THROW(block(), std::runtime_error);
    EXPECT_EQ(stopped, 1);
  });
}

TEST_P(ScopeTest, JoinThrowsOnceAndTheScopeStaysUsable) {
  run_with(GetParam(), [] {
    Scope scope;
    scope.go([] { throw std::runtime_error("first"); });
    EXPECT_THROW(scope.join(), std::runtime_error);
    scope.join();
    int ran = 0;
    scope.go([&] { ran = 1; });
    scope.join();
    EXPECT_EQ(ran, 1);
  });
}

TEST_P(ScopeTest, AnExceptionOfTheOwnerCancelsAndJoins) {
  run_with(GetParam(), [] {
    int ended = 0;
    const auto block = [&] {
      Scope scope;
      scope.go([&, ctx = scope.context()] {
        ctx.wait();
        ended = 1;
        throw std::logic_error("dropped");
      });
      yield();
      throw std::runtime_error("the owner's");
    };
    EXPECT_THROW(block(), std::runtime_error);
    EXPECT_EQ(ended, 1);
    // Inside a catch block, and inside a destructor that runs while an exception propagates.
    struct InDestructor {
      std::atomic<int>& ran;
      ~InDestructor() {
        Scope scope;
        scope.go([this] { ++ran; });
        EXPECT_FALSE(scope.context().done());
      }
    };
    std::atomic<int> ran{0};
    try {
      const InDestructor flying{ran};
      throw 1;
    } catch (int) {
      Scope scope;
      scope.go([&ran] { ++ran; });
    }
    EXPECT_EQ(ran, 2);
  });
}

TEST_P(ScopeTest, GoexitOfTheOwnerJoins) {
  run_with(GetParam(), [] {
    int ended = 0;
    WaitGroup group;
    group.go([&] {
      Scope scope;
      scope.go([&] {
        yield();
        ended = 1;
      });
      goexit();
    });
    group.wait();
    EXPECT_EQ(ended, 1);
  });
}

TEST_P(ScopeTest, GoexitOfTheOwnerDropsWhatAChildHasThrown) {
  run_with(GetParam(), [] {
    bool was_cancelled = false;
    WaitGroup group;
    group.go([&] {
      Scope scope;
      scope.go([] { throw std::runtime_error("dropped"); });
      scope.go([&] {
        scope.context().wait();
        was_cancelled = true;
      });
      goexit();
    });
    group.wait();
    EXPECT_TRUE(was_cancelled);
  });
}

TEST_P(ScopeTest, CancellationReachesThroughScopes) {
  run_with(GetParam(), [] {
    auto [ctx, cancel] = with_timeout(Context::background(), 1ms);
    Scope outer(ctx);
    outer.go([&] {
      Scope inner(outer.context());
      inner.go([&] {
        inner.context().wait();
        EXPECT_TRUE(inner.context().cause().timeout());
      });
    });
  });
}

}  // namespace
}  // namespace tuza
