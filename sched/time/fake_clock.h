// Public header, part of <tuza/time.h>.
//
// FakeClock: a clock for tests, whose time passes only when nothing else can happen.
//
//     tuza::run([] {
//       tuza::testing::FakeClock clock;
//       Cache cache(24h);                    // starts a goroutine that cleans it every hour
//       cache.put("key", "value");
//       clock.advance(25h);                  // takes microseconds; the cleaner has had its 25 turns
//       EXPECT_FALSE(cache.get("key"));
//     });
//
// While a FakeClock lives, tuza::now(), sleeping, Timer, Ticker, after_func(), deadlines of contexts, rate
// limiters and all waits with a time limit in sched use it. The clock stands still while any goroutine can
// run. When all goroutines wait, it jumps to the time at which the first timer is due. Tests of timeouts are
// therefore exact, and fast. The clock begins at the current time of the steady clock. Modelled on Go's
// testing/synctest.
//
// The clock also stands still while a goroutine waits for I/O, is in a blocking call or computes without a
// P, and while there is a tuza::ExternalWaker: an outside event may then wake a goroutine. The scheduler and other
// clocks use real time. A deadline of a connection is a time of this clock: one of a socket is kept in real time, as what
// remained when it was set, because the kernel's time cannot be faked; one in memory (netpoll/testing.h) is kept here, and
// a goroutine that waits for such a connection does not hold the clock up. Timers that were started before the FakeClock
// keep real time, and do not hold the fake clock up. If all goroutines wait and there is no timer to jump
// to, they are deadlocked, and the process ends as usual.
//
// Only one at a time, on a goroutine (fatal otherwise). Create the FakeClock before everything that it is to
// govern, and destroy it last. When it is destroyed, the remaining timers continue in real time with their
// remaining durations.
#pragma once

#include <tuza/sched/time/sleep.h>

#include <chrono>
#include <cstdint>

namespace tuza::testing {

class [[nodiscard]] FakeClock {
 public:
  FakeClock();
  ~FakeClock();
  FakeClock(const FakeClock&) = delete;
  FakeClock& operator=(const FakeClock&) = delete;

  [[nodiscard]] std::chrono::steady_clock::time_point now() const;
  // The fake time since the FakeClock was created.
  [[nodiscard]] std::chrono::nanoseconds elapsed() const;

  // Lets `duration` pass, with all that happens in that time, and returns when all other goroutines wait for
  // something later. Parks.
  template <class Rep, class Period>
  void advance(const std::chrono::duration<Rep, Period>& duration) {
    sleep_for(duration);
    settle();
  }
  // Returns when all other goroutines wait; no time passes. Parks.
  void settle();

 private:
  std::int64_t began_ns_;
};

}  // namespace tuza::testing
