// The edges of time, for every call that takes a duration or a point in time: times in the past have passed,
// times beyond the end of time never come, and neither overflows or disables the timer.
#include <tuza/sched/go.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/select.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/children.h>
#include <tuza/sched/tests/hogs.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/after_func.h>
#include <tuza/sched/time/fake_clock.h>
#include <tuza/sched/time/leak_check.h>
#include <tuza/sched/time/rate.h>
#include <tuza/sched/time/sleep.h>
#include <tuza/sched/time/ticker.h>
#include <tuza/sched/time/timer.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <mutex>
#include <ratio>
#include <thread>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using std::chrono::hours;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;
using namespace testing;

using Seconds = std::chrono::duration<double>;
using Weeks = std::chrono::duration<float, std::ratio<7L * 24 * 3600>>;
template <class Duration>
using Point = std::chrono::time_point<steady_clock, Duration>;

// Calls `f` with each duration that has no time left.
void each_past_duration(auto f) {
  f(0ns);
  f(-1ns);
  f(nanoseconds::min());
  f(hours::min());
  f(Seconds(-0.5));
  f(Seconds(-std::numeric_limits<double>::infinity()));
  f(Seconds(std::numeric_limits<double>::quiet_NaN()));
  f(Weeks(-1e30F));
}
void each_endless_duration(auto f) {
  f(nanoseconds::max());
  f(nanoseconds::max() - 1ns);
  f(std::chrono::milliseconds::max());
  f(hours::max());
  f(Seconds(std::numeric_limits<double>::infinity()));
  f(Seconds(1e300));
  f(Weeks(1e30F));
}
void each_past_point(auto f) {
  f(steady_clock::time_point::min());
  f(steady_clock::time_point());
  f(steady_clock::now());
  f(Point<hours>(hours::min()));
  f(Point<hours>(-1h));
  f(Point<Seconds>(Seconds(std::numeric_limits<double>::quiet_NaN())));
}
void each_endless_point(auto f) {
  f(steady_clock::time_point::max());
  f(steady_clock::time_point::max() - 1ns);
  f(Point<hours>(hours::max()));
  f(Point<Seconds>(Seconds(std::numeric_limits<double>::infinity())));
}

void let_time_pass() {
  for (int i = 0; i < 20; ++i) yield();
  sleep_for(1ms);
}

TEST(TimeEdges, WhatHasPassedIsOver) {
  run_with(2, [] {
    Mutex held;
    const std::scoped_lock lock(held);
    Chan<int> nothing;
    each_past_duration([&](auto d) {
      sleep_for(d);
      EXPECT_TRUE(sleep_for(Context(), d));
      EXPECT_FALSE(held.try_lock_for(d));
      EXPECT_EQ(select(on_recv(nothing), on_timeout(d, [] {})), 1u);
      Timer(d).wait();
      Timer timer;
      timer.reset(d);
      timer.wait();
      EXPECT_TRUE(after(d).wait(Context()));
      std::atomic<bool> called{false};
      auto call = after_func(d, [&called] { called = true; });
      wait_for([&called] { return called.load(); });
      call.reset(d);
      wait_for([&call] { return !call.stop(); });
      const auto [ctx, cancel] = with_timeout(Context(), d);
      EXPECT_TRUE(ctx.done());
      EXPECT_EQ(rate::every(d), rate::kInfinite);
    });
    each_past_point([&](auto when) {
      sleep_until(when);
      EXPECT_TRUE(sleep_until(Context(), when));
      EXPECT_FALSE(held.try_lock_until(when));
      Timer timer;
      timer.reset_at(when);
      timer.wait();
      const auto [ctx, cancel] = with_deadline(Context(), when);
      EXPECT_TRUE(ctx.done());
    });
  });
}

// `waits(context)` waits for an event that never comes, until the context ends.
void expect_endless(auto waits) {
  const auto [ctx, cancel] = with_cancel(Context());
  std::atomic<bool> over{false};
  WaitGroup group;
  group.go([&, ctx = ctx] {
    EXPECT_FALSE(waits(ctx));
    over = true;
  });
  let_time_pass();
  EXPECT_FALSE(over);
  cancel();
  group.wait();
}

void expect_free_later(Mutex& mutex, auto lock) {
  mutex.lock();
  std::atomic<bool> over{false};
  WaitGroup group;
  group.go([&] {
    EXPECT_TRUE(lock());
    over = true;
    mutex.unlock();
  });
  let_time_pass();
  EXPECT_FALSE(over);
  mutex.unlock();
  group.wait();
}

TEST(TimeEdges, WhatLiesBeyondTheEndOfTimeNeverComes) {
  run_with(2, [] {
    Mutex mutex;
    Chan<int> chan(1);
    each_endless_duration([&](auto d) {
      expect_endless([d](const Context& ctx) { return sleep_for(ctx, d).has_value(); });
      expect_endless([d](const Context& ctx) { return after(d).wait(ctx).has_value(); });
      expect_free_later(mutex, [&] { return mutex.try_lock_for(d); });
      WaitGroup sender;
      sender.go([&] {
        let_time_pass();
        chan.send(1);
      });
      EXPECT_EQ(select(on_recv(chan), on_timeout(d, [] {})), 0u);
      sender.wait();
      Timer timer(d);
      Ticker ticker(d);
      auto call = after_func(d, [] { ADD_FAILURE() << "it was called"; });
      const auto [ctx, cancel] = with_timeout(Context(), d);
      let_time_pass();
      EXPECT_FALSE(timer.try_wait());
      EXPECT_TRUE(timer.reset(d));
      EXPECT_TRUE(timer.stop());
      EXPECT_FALSE(ticker.try_wait());
      EXPECT_TRUE(call.reset(d));
      EXPECT_TRUE(call.stop());
      EXPECT_FALSE(ctx.done());
      EXPECT_GT(rate::every(d), 0);
      EXPECT_LT(rate::every(d), 1e-6);
    });
    each_endless_point([&](auto when) {
      expect_endless([when](const Context& ctx) { return sleep_until(ctx, when).has_value(); });
      expect_free_later(mutex, [&] { return mutex.try_lock_until(when); });
      Timer timer;
      timer.reset_at(when);
      const auto [ctx, cancel] = with_deadline(Context(), when);
      let_time_pass();
      EXPECT_TRUE(timer.stop());
      EXPECT_FALSE(ctx.done());
    });
  });
}

// The report waits no longer than the duration; with no time left, it checks once.
TEST(TimeEdges, ALeakIsReportedAtOnceOrWhenItIsGone) {
  run_with(2, [] {
    const testing::LeakCheck check;
    Chan<int> end;
    go([&end] { end.recv(); });
    each_past_duration([&](auto d) { EXPECT_NE(check.report(d), ""); });
    end.close();
    each_endless_duration([&](auto d) { EXPECT_EQ(check.report(d), ""); });
  });
}

// A thread has a wait path of its own.
TEST(TimeEdges, AThreadThatIsNoGoroutineDoesNotWaitForThePast) {
  Mutex mutex;
  mutex.lock();
  const auto look = [&mutex] {
    each_past_duration([&](auto d) { EXPECT_FALSE(mutex.try_lock_for(d)); });
    each_past_point([&](auto when) { EXPECT_FALSE(mutex.try_lock_until(when)); });
  };
  look();
  run_with(2, [&] { blocking([&] { std::thread(look).join(); }); });
  mutex.unlock();
}

TEST(TimeEdges, ALimiterMayBeAskedAboutAnyTime) {
  run_with(1, [] {
    rate::Limiter limiter(10, 5);
    (void)limiter.tokens_at(steady_clock::time_point::min());
    (void)limiter.tokens_at(steady_clock::time_point());
    const auto last = steady_clock::time_point::max();
    EXPECT_TRUE(limiter.allow_n(last, 5));
    EXPECT_FALSE(limiter.allow_n(last, 1));
    rate::Reservation later = limiter.reserve_n(last, 1);
    EXPECT_GE(later.delay_from(steady_clock::time_point::min()), 0ns);
    EXPECT_GE(later.delay_from(last), 0ns);
    later.cancel_at(last);
    (void)limiter.allow_n(steady_clock::time_point::min(), 1);
    limiter.set_limit_at(last, 1);
    limiter.set_burst_at(steady_clock::time_point::min(), 1);
  });
}

TEST(TimeEdges, AFakeClockDoesNotGoBackwards) {
  run_with(1, [] {
    testing::FakeClock clock;
    const auto before = clock.now();
    each_past_duration([&](auto d) { clock.advance(d); });
    EXPECT_EQ(clock.now(), before);
    EXPECT_EQ(clock.elapsed(), 0ns);
  });
}

#if !defined(TUZA_TSAN)  // which cannot start threads in the child of a fork
// The sleeper used to be taken for a goroutine that nothing can wake.
TEST(TimeEdges, SleepingForEverIsNoDeadlock) {
  const testing::Ended ended = testing::in_fork([] {
    std::thread([] {
      std::this_thread::sleep_for(100ms);
      ::_exit(7);
    }).detach();
    run([] { sleep_until(steady_clock::time_point::max()); });
  });
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}
#endif

}  // namespace
}  // namespace tuza
