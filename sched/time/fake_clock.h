// Public header, part of <tuza/time.h>.
//
// FakeClock: time for tests, which passes only when nothing else happens.
//
//     tuza::run([] {
//       tuza::testing::FakeClock clock;
//       Cache cache(24h);                    // starts a goroutine that cleans it every hour
//       cache.put("key", "value");
//       clock.advance(25h);                  // takes microseconds; the cleaner has had its 25 turns
//       EXPECT_FALSE(cache.get("key"));
//     });
//
// While it lives, tuza::now(), sleeping, Timer, Ticker, after_func(), deadlines of contexts, rate limiters
// and all waits with a time limit in sched go by it. It stands still while any goroutine can run; when all of
// them wait, it jumps to the time at which the first timer is due. So tests of timeouts are exact, and fast.
// It begins at the present of the steady clock. As Go's testing/synctest.
//
// It also stands still while a goroutine waits for I/O, is in a blocking call or computes without a P, and
// while there is a tuza::ExternalWaker: something outside may wake somebody. Deadlines of connections, the
// scheduler and other clocks stay real. Timers that were started before keep real time, and do not hold it
// up. If all goroutines wait and there is nothing to jump to, they are deadlocked, and the process ends as
// ever.
//
// One at a time, on a goroutine (fatal otherwise). Create it before what it shall govern, and let that end
// before it: when it goes, timers that are left go on in real time with what they had left.
#pragma once

#include <tuza/sched/time/sleep.h>

#include <chrono>
#include <cstdint>

namespace tuza::testing {

class FakeClock {
 public:
  FakeClock();
  ~FakeClock();
  FakeClock(const FakeClock&) = delete;
  FakeClock& operator=(const FakeClock&) = delete;

  [[nodiscard]] std::chrono::steady_clock::time_point now() const;
  // Since it was created, by itself.
  [[nodiscard]] std::chrono::nanoseconds elapsed() const;

  // Lets so much time pass, with all that happens meanwhile, and returns when everybody else waits for
  // something later. Parks.
  template <class Rep, class Period>
  void advance(const std::chrono::duration<Rep, Period>& duration) {
    sleep_for(duration);
    settle();
  }
  // Returns when everybody else waits; no time passes. Parks.
  void settle();

 private:
  std::int64_t began_ns_;
};

}  // namespace tuza::testing
