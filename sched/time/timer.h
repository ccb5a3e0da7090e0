// Public header, part of <tuza/time.h>.
//
// Timer: fires once, after a delay; it can be waited for, stopped and postponed.
//
//     tuza::Timer idle(30s);
//     while (auto request = read_request(conn, idle)) {   // gives up when `idle` fires
//       idle.reset(30s);                                  // whatever has fired meanwhile is forgotten
//       answer(*request);
//     }
//
// Semantics of Go 1.23: when stop() or reset() has returned, no earlier fire is ever seen, however close it
// was. A fire is kept until exactly one caller of wait() or select receives it; if several wait, the first
// one gets it. After that, and after stop(), wait() waits until another goroutine calls reset().
//
// Ordering: everything done before reset() is visible after the wait() that receives its fire.
// Thread-safe: any goroutine, any thread, but it must be started inside tuza::run (fatal elsewhere). It uses
// tuza::now(), never fires early, and fires late by what the scheduler needs.
// Lifetime: may be destroyed at any time, armed or firing, but not while a caller waits for it (fatal). No
// allocation. A pending timer costs 64 bytes, and 16 in the scheduler.
#pragma once

#include <tuza/sched/result.h>
#include <tuza/sched/time/detail/timer_channel.h>
#include <tuza/sched/time/sleep.h>

#include <chrono>
#include <cstdint>

namespace tuza {

class Context;

class alignas(64) Timer {
 public:
  // A timer that is not started.
  Timer() : channel_(&Timer::on_fire, this) {}
  // Fires after `delay`; at once if the delay is not positive.
  template <class Rep, class Period>
  explicit Timer(const std::chrono::duration<Rep, Period>& delay) : Timer() {
    reset(delay);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Fires `delay` from now, and at no other time. True if the timer was pending, or had an unreceived fire.
  // Does not park.
  template <class Rep, class Period>
  bool reset(const std::chrono::duration<Rep, Period>& delay) {
    return reset_at_ns(rt::deadline_after(rt::whole_ns(delay)));
  }
  template <class Duration>
  bool reset_at(const std::chrono::time_point<std::chrono::steady_clock, Duration>& when) {
    return reset_at_ns(rt::point_ns(when));
  }
  // Prevents the fire. Returns the same as reset(). Does not park.
  bool stop() { return channel_.disarm(); }

  // Waits for the fire and receives it. Parks (a thread blocks).
  void wait() { channel_.wait(); }
  // Returns the context's cause if the context ends first; the context is checked before the timer.
  [[nodiscard]] Result<void> wait(const Context& ctx);
  // Receives a fire if one is kept. Does not park.
  bool try_wait() { return channel_.try_wait(); }

  // For select.
  rt::TimerChannel& channel() { return channel_; }

 private:
  static void on_fire(rt::Timer& timer);
  bool reset_at_ns(std::int64_t when_ns) { return channel_.arm(when_ns); }

  rt::TimerChannel channel_;
};

// Returns a started timer, for one wait or select: after(1s).wait().
template <class Rep, class Period>
[[nodiscard]] Timer after(const std::chrono::duration<Rep, Period>& delay) {
  return Timer(delay);
}

}  // namespace tuza
