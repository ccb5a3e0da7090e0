// rate::Limiter: tables of facts with explicit times, from the documentation of golang.org/x/time/rate.
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/fake_clock.h>
#include <tuza/sched/time/rate.h>

#include <thread>
#include <vector>

namespace tuza::rate {
namespace {

using namespace std::chrono_literals;
using namespace testing;

const TimePoint kStart{1000h};
TimePoint at(std::chrono::nanoseconds since) { return kStart + since; }

struct Allow {
  std::chrono::milliseconds when;
  int n;
  bool allowed;
};

void check(Limiter& limiter, const std::vector<Allow>& facts) {
  for (const Allow& fact : facts) {
    EXPECT_EQ(limiter.allow_n(at(fact.when), fact.n), fact.allowed) << fact.when << " n=" << fact.n;
  }
}

TEST(Rate, EveryIsTheInverseOfTheInterval) {
  EXPECT_EQ(every(100ms), 10);
  EXPECT_EQ(every(1min), 1.0 / 60);
  EXPECT_EQ(every(0s), kInfinite);
  EXPECT_EQ(every(-1s), kInfinite);
}

TEST(Rate, AllowsTheBurstAndThenTheLimit) {
  Limiter one(10, 1);
  check(one, {{0ms, 1, true},
              {0ms, 1, false},
              {99ms, 1, false},
              {100ms, 1, true},
              {150ms, 1, false},
              {200ms, 1, true},
              {250ms, 1, false},
              {1000ms, 1, true},
              {1000ms, 1, false}});
  Limiter three(10, 3);
  check(three, {{0ms, 1, true},
                {0ms, 1, true},
                {0ms, 1, true},
                {0ms, 1, false},
                {100ms, 1, true},
                {100ms, 1, false},
                {900ms, 3, true},
                {900ms, 1, false},
                {1000ms, 2, false},
                {1000ms, 1, true}});
  Limiter batch(10, 3);
  check(batch, {{0ms, 4, false},
                {0ms, 2, true},
                {0ms, 2, false},
                {0ms, 0, true},
                {100ms, 2, true},
                {100ms, 1, false},
                {10'000ms, 4, false},
                {10'000ms, 3, true}});
}

TEST(Rate, TimesThatGoBackwardsAddNothing) {
  Limiter limiter(10, 3);
  check(limiter, {{100ms, 1, true},  // two are left
                  {0ms, 1, true},
                  {0ms, 1, true},
                  {0ms, 1, false},
                  {0ms, 1, false},
                  {100ms, 1, true},  // counted from the last event
                  {100ms, 1, false}});
}

TEST(Rate, InfiniteAllowsEverythingAndZeroOnlyTheBurst) {
  Limiter infinite(kInfinite, 0);
  check(infinite, {{0ms, 1, true}, {0ms, 1'000'000, true}});
  EXPECT_EQ(infinite.reserve_n(kStart, 100).delay_from(kStart), 0s);
  Limiter zero(0, 3);
  check(zero, {{0ms, 2, true}, {0ms, 2, false}, {3'600'000ms, 1, true}, {3'600'000ms, 1, false}});
  EXPECT_FALSE(zero.reserve_n(kStart, 1).ok());
}

TEST(Rate, ReservationsSayHowLongToWait) {
  Limiter limiter(10, 2);
  EXPECT_EQ(limiter.reserve_n(kStart, 2).delay_from(kStart), 0s);
  const Reservation second = limiter.reserve_n(kStart, 2);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second.delay_from(kStart), 200ms);
  EXPECT_EQ(second.delay_from(at(150ms)), 50ms);
  EXPECT_EQ(second.delay_from(at(1s)), 0s);
  EXPECT_EQ(limiter.reserve_n(at(50ms), 1).delay_from(at(50ms)), 250ms);
  EXPECT_DOUBLE_EQ(limiter.tokens_at(at(50ms)), -2.5);
  const Reservation never = limiter.reserve_n(kStart, 3);
  EXPECT_FALSE(never.ok());
  EXPECT_EQ(never.delay_from(kStart), kForever);
}

struct Cancel {
  const char* what;
  std::vector<int> reserved;  // all at 0
  std::size_t cancelled;
  std::chrono::milliseconds when;
  std::chrono::milliseconds next;  // delay of a reservation of one at that time
};

TEST(Rate, CancelGivesBackWhatNobodyReservedUpon) {
  const std::vector<Cancel> facts = {
      {"the last one", {2, 2}, 1, 0ms, 100ms},
      {"too late: it was time to act", {2, 2}, 1, 250ms, 50ms},
      {"already acted upon", {2, 2}, 0, 100ms, 200ms},
      {"what came later needs all of it", {2, 1, 1}, 1, 0ms, 300ms},
      {"what came later needs half of it", {2, 2, 1}, 1, 0ms, 300ms},
      {"nothing came later", {2, 1, 2}, 2, 0ms, 200ms},
  };
  for (const Cancel& fact : facts) {
    Limiter limiter(10, 2);
    std::vector<Reservation> reservations;
    for (const int n : fact.reserved) reservations.push_back(limiter.reserve_n(kStart, n));
    reservations[fact.cancelled].cancel_at(at(fact.when));
    EXPECT_EQ(limiter.reserve_n(at(fact.when), 1).delay_from(at(fact.when)), fact.next) << fact.what;
  }
}

TEST(Rate, LimitAndBurstCountFromTheirChange) {
  Limiter limiter(10, 10);
  EXPECT_TRUE(limiter.allow_n(kStart, 10));
  limiter.set_limit_at(at(500ms), 100);  // five tokens so far
  EXPECT_EQ(limiter.limit(), 100);
  EXPECT_DOUBLE_EQ(limiter.tokens_at(at(510ms)), 6);
  limiter.set_burst_at(at(510ms), 2);
  EXPECT_EQ(limiter.burst(), 2);
  EXPECT_DOUBLE_EQ(limiter.tokens_at(at(510ms)), 2);
  EXPECT_FALSE(limiter.allow_n(at(600ms), 3));
  EXPECT_TRUE(limiter.allow_n(at(600ms), 2));
}

TEST(Rate, WaitWaitsAndTellsWhenThatIsUseless) {
  run_with(2, [] {
    const testing::FakeClock clock;
    Limiter limiter(1, 2);
    EXPECT_TRUE(limiter.wait_n(2));
    EXPECT_EQ(clock.elapsed(), 0s);
    EXPECT_TRUE(limiter.wait());
    EXPECT_EQ(clock.elapsed(), 1s);
    EXPECT_TRUE(limiter.wait_n(3).error().is(std::errc::invalid_argument));
    {
      const auto [ctx, cancel] = with_timeout(Context::background(), 500ms);
      EXPECT_TRUE(limiter.wait(ctx).error().timeout());
      EXPECT_EQ(clock.elapsed(), 1s) << "it is known at once";
    }
    auto [ctx, cancel] = with_cancel(Context::background());
    WaitGroup group;
    group.go([&, ctx = ctx] { EXPECT_TRUE(limiter.wait_n(ctx, 2).error().cancelled()); });
    sleep_for(1s);
    cancel();
    group.wait();
    EXPECT_TRUE(limiter.wait(ctx).error().cancelled());
    EXPECT_DOUBLE_EQ(limiter.tokens(), 1) << "what was not used has been given back";
  });
}

TEST(Rate, HoldsUnderThreads) {
  Limiter limiter(0, 1'000);
  std::atomic<int> allowed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 1'000; ++k) allowed += limiter.allow() ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allowed.load(), 1'000);
}

TEST(RateDeathTest, NegativeNumbersAreAMistake) {
  Limiter limiter(1, 1);
  EXPECT_DEATH((void)limiter.allow_n(kStart, -1), "negative number of tokens");
}

}  // namespace
}  // namespace tuza::rate
