// Public header, part of <tuza/time.h>.
//
// Timer: something that happens once, later, and that can be waited for, stopped and postponed.
//
//     tuza::Timer idle(30s);
//     while (auto request = read_request(conn, idle)) {   // gives up when `idle` fires
//       idle.reset(30s);                                  // whatever has fired meanwhile is forgotten
//       answer(*request);
//     }
//
// Semantics of Go 1.23: when stop() or reset() has returned, no fire of before is ever seen, however close
// it was. A fire is kept until one caller of wait() or a select receives it, which gets it alone; of several
// that wait, the first. After that, and after stop(), wait() waits for whoever calls reset().
//
// Ordering: what was done before reset() is visible after the wait() that receives its fire.
// Thread-safe: any goroutine, any thread, but start it inside tuza::run (fatal elsewhere). It goes by
// tuza::now(), never fires early, and late by what the scheduler needs.
// Lifetime: may be destroyed at any time, armed or firing; not while somebody waits for it (fatal). No
// allocation. What a pending one costs: 64 bytes, and 16 in the scheduler.
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
  // Not started.
  Timer() : channel_(&Timer::on_fire, this) {}
  // Fires after `delay`; at once if that is not positive.
  template <class Rep, class Period>
  explicit Timer(const std::chrono::duration<Rep, Period>& delay) : Timer() {
    reset(delay);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Fires `delay` from now, and not otherwise. True if it was pending, or had a fire that nobody has
  // received. Does not park.
  template <class Rep, class Period>
  bool reset(const std::chrono::duration<Rep, Period>& delay) {
    return reset_at_ns(rt::deadline_after(rt::whole_ns(delay)));
  }
  template <class Duration>
  bool reset_at(const std::chrono::time_point<std::chrono::steady_clock, Duration>& when) {
    return reset_at_ns(rt::point_ns(when));
  }
  // Does not fire. True as for reset(). Does not park.
  bool stop() { return channel_.disarm(); }

  // Waits for the fire and receives it. Parks (a thread blocks).
  void wait() { channel_.wait(); }
  // The context's cause if that ended first; it is asked before the timer.
  Result<void> wait(const Context& ctx);
  // Receives a fire that is there. Does not park.
  bool try_wait() { return channel_.try_wait(); }

  // For select.
  rt::TimerChannel& channel() { return channel_; }

 private:
  static void on_fire(rt::Timer& timer);
  bool reset_at_ns(std::int64_t when_ns) { return channel_.arm(when_ns); }

  rt::TimerChannel channel_;
};

// A timer that has been started, for one wait or select: after(1s).wait().
template <class Rep, class Period>
[[nodiscard]] Timer after(const std::chrono::duration<Rep, Period>& delay) {
  return Timer(delay);
}

}  // namespace tuza
