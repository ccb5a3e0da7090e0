// singleflight: one call per key at a time, with its result for all callers.
#include <tuza/sched/sync/singleflight.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <stdexcept>
#include <string>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using namespace testing;

using Flights = singleflight::Group<std::string, int>;

class SingleflightTest : public WithProcs {};
TUZA_WITH_PROCS(SingleflightTest);

TEST_P(SingleflightTest, AloneItIsACall) {
  run_with(GetParam(), [] {
    Flights flights;
    auto [value, shared] = flights.call("a", [] { return 1; });
    EXPECT_EQ(value, 1);
    EXPECT_FALSE(shared);
    EXPECT_EQ(flights.call("a", [] { return 2; }).value, 2) << "no cache";
    const auto in_goroutine = flights.call(Context::background(), "a", [] { return 3; });
    EXPECT_EQ(in_goroutine->value, 3);
  });
}

TEST_P(SingleflightTest, OneWorksForAll) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(200); ++round) {
      Flights flights;
      std::atomic<int> asking{0}, runs{0}, shared{0};
      constexpr int kCallers = 6;
      int written[kCallers] = {};  // by flight; plain ints: TSan checks the ordering
      WaitGroup group;
      for (int i = 0; i < kCallers; ++i) {
        group.go([&, i] {
          ++asking;
          const auto work = [&] {
            yield_until([&] { return asking == kCallers; });
            const int run = runs++;
            written[run] = round + 1;
            yield();
            return run;
          };
          const auto outcome =
              i % 2 == 0 ? flights.call("key", work) : *flights.call(Context::background(), "key", work);
          EXPECT_EQ(written[outcome.value], round + 1);
          shared += outcome.shared ? 1 : 0;
        });
      }
      group.wait();
      EXPECT_GE(runs, 1);
      EXPECT_TRUE(runs == kCallers || shared >= 2);
    }
  });
}

TEST_P(SingleflightTest, KeysDoNotMeet) {
  run_with(GetParam(), [] {
    Flights flights;
    const auto outcome = flights.call("a", [&] { return flights.call("b", [] { return 2; }).value + 1; });
    EXPECT_EQ(outcome.value, 3);
    EXPECT_FALSE(outcome.shared);
  });
}

TEST_P(SingleflightTest, AllGetTheException) {
  run_with(GetParam(), [] {
    Flights flights;
    std::atomic<int> thrown{0}, asking{0};
    WaitGroup group;
    for (int i = 0; i < 4; ++i) {
      group.go([&] {
        ++asking;
        try {
          (void)flights.call("key", [&]() -> int {
            yield_until([&] { return asking == 4; });
            yield();
            throw std::runtime_error("no");
          });
        } catch (const std::runtime_error&) {
          ++thrown;
        }
      });
    }
    group.wait();
    EXPECT_EQ(thrown, 4);
  });
}

TEST_P(SingleflightTest, AContextEndsTheWaitNotTheFlight) {
  run_with(GetParam(), [] {
    Flights flights;
    auto [gate, open] = with_cancel(Context::background());
    auto [ctx, cancel] = with_timeout(Context::background(), 1ms);
    const auto early = flights.call(ctx, "key", [gate = gate] {
      gate.wait();
      return 1;
    });
    ASSERT_FALSE(early);
    EXPECT_TRUE(early.error().timeout());
    open();
    // A caller that arrives before the flight lands still gets its result.
    yield_until([&] {
      const int value = flights.call("key", [] { return 2; }).value;
      EXPECT_TRUE(value == 1 || value == 2) << value;
      return value == 2;
    });
  });
}

TEST_P(SingleflightTest, ForgottenFlightsAreNotJoined) {
  run_with(GetParam(), [] {
    Flights flights;
    auto [gate, open] = with_cancel(Context::background());
    std::atomic<bool> began{false};
    WaitGroup group;
    group.go([&] {
      const auto first = flights.call("key", [&] {
        began = true;
        gate.wait();
        return 1;
      });
      EXPECT_EQ(first.value, 1);
    });
    yield_until([&] { return began.load(); });
    flights.forget("key");
    EXPECT_EQ(flights.call("key", [] { return 2; }).value, 2);
    open();
    group.wait();
    EXPECT_EQ(flights.call("key", [] { return 3; }).value, 3);
  });
}

TEST_P(SingleflightTest, GoexitBreaksThePromise) {
  run_with(GetParam(), [] {
    Flights flights;
    EXPECT_THROW((void)flights.call(Context::background(), "key", []() -> int { goexit(); }),
                 std::future_error);
    EXPECT_EQ(flights.call("key", [] { return 1; }).value, 1);
  });
}

// A flight may outlive its group.
TEST_P(SingleflightTest, TheGroupMayGoBeforeTheFlight) {
  run_with(GetParam(), [] {
    auto [gate, open] = with_cancel(Context::background());
    auto [ctx, cancel] = with_cancel(Context::background());
    WaitGroup group;
    {
      Flights flights;
      group.go([&, cancel = std::move(cancel)] { cancel(); });
      EXPECT_FALSE(flights.call(ctx, "key", [gate = gate] {
        gate.wait();
        return 1;
      }));
      group.wait();
    }
    open();
  });
}

}  // namespace
}  // namespace tuza
