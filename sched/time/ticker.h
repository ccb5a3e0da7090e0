// Public header, part of <tuza/time.h>.
//
// Ticker: a periodic timer, whose ticks have fixed distances from its start.
//
//     tuza::Ticker ticker(10s);
//     while (ticker.wait(ctx)) report();
//
// A ticker never drifts: the ticks are at start + n * period, however late each of them is. It drops ticks
// for slow receivers: one tick is kept until it is received, and ticks that come before then are lost. When
// stop() or reset() has returned, no earlier tick is ever seen (Go 1.23). stop() wakes nobody.
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
  // The first tick is one period from now. A period that is not positive is a programming error, and fatal.
  template <class Rep, class Period>
  explicit Ticker(const std::chrono::duration<Rep, Period>& period) : Ticker() {
    start(rt::whole_ns(period));
  }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  // Restarts the ticker now with the new period, even if it was stopped. Does not park.
  template <class Rep, class Period>
  void reset(const std::chrono::duration<Rep, Period>& period) {
    start(rt::whole_ns(period));
  }
  // Stops the ticks. Does not park.
  void stop() { channel_.disarm(); }

  // Waits for a tick and receives it. Parks (a thread blocks).
  void wait() { channel_.wait(); }
  // Returns the context's cause if the context ends first; the context is checked before the ticker.
  [[nodiscard]] Result<void> wait(const Context& ctx);
  // Receives a tick if one is kept. Does not park.
  bool try_wait() { return channel_.try_wait(); }

  // For select.
  rt::TimerChannel& channel() { return channel_; }

 private:
  Ticker() : channel_(&Ticker::on_fire, this) {}
  static void on_fire(rt::Timer& timer);
  void start(std::chrono::nanoseconds period);
  std::int64_t next_tick_ns() TUZA_REQUIRES(channel_.lock());

  rt::TimerChannel channel_;
  std::int64_t period_ns_ TUZA_GUARDED_BY(channel_.lock()) = 0;
  std::int64_t tick_ns_ TUZA_GUARDED_BY(channel_.lock()) = 0;  // due time of the armed tick
};

}  // namespace tuza
