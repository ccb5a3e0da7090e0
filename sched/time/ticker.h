// Public header, part of <tuza/time.h>.
//
// Ticker: something that happens again and again, at fixed distances from its start.
//
//     tuza::Ticker ticker(10s);
//     while (ticker.wait(ctx)) report();
//
// It never drifts: the ticks are at start + n * period, whatever the lateness of each. It drops ticks for
// slow receivers: one tick is kept until it is received, and those that come meanwhile are lost. When stop()
// or reset() has returned, no tick of before is ever seen (Go 1.23). stop() wakes nobody.
//
// Ordering, threads, lifetime: as for Timer. No allocation.
#pragma once

#include <tuza/sched/result.h>
#include <tuza/sched/time/detail/timer_channel.h>
#include <tuza/sched/time/sleep.h>

#include <chrono>
#include <cstdint>

namespace tuza {

class Context;

class Ticker {
 public:
  // The first tick is one period from now. A period that is not positive is a mistake, and fatal.
  template <class Rep, class Period>
  explicit Ticker(const std::chrono::duration<Rep, Period>& period) : Ticker() {
    start(rt::whole_ns(period));
  }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  // Begins anew with that period, now; also when it was stopped. Does not park.
  template <class Rep, class Period>
  void reset(const std::chrono::duration<Rep, Period>& period) {
    start(rt::whole_ns(period));
  }
  // No more ticks. Does not park.
  void stop() { channel_.disarm(); }

  // Waits for a tick and receives it. Parks (a thread blocks).
  void wait() { channel_.wait(); }
  // The context's cause if that ended first; it is asked before the ticker.
  Result<void> wait(const Context& ctx);
  // Receives a tick that is there. Does not park.
  bool try_wait() { return channel_.try_wait(); }

  // For select.
  rt::TimerChannel& channel() { return channel_; }

 private:
  Ticker() : channel_(&Ticker::on_fire, this) {}
  static void on_fire(rt::Timer& timer);
  void start(std::chrono::nanoseconds period);
  std::int64_t next_tick_ns();

  rt::TimerChannel channel_;
  std::int64_t period_ns_ = 0;  // guarded by the channel's lock
  std::int64_t tick_ns_ = 0;    // guarded by the channel's lock: when the tick that is armed is due
};

}  // namespace tuza
