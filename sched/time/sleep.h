// Public header, part of <tuza/time.h>.
//
// Sleeping: the goroutine waits, the thread works on.
//
//     tuza::sleep_for(250ms);
//     tuza::sleep_until(std::chrono::steady_clock::now() + 1s);
//
// By tuza::now(), monotonic. Never wakes early; late by what the scheduler needs, normally well under a
// millisecond. Parks. No allocation. Goroutines only; with a Context, threads too.
//
// All times saturate, in any unit: what is beyond the clock's end of time, in 292 years, is that moment; what has
// passed is now; what is no number is no time at all.
#pragma once

#include <tuza/sched/detail/deadline.h>
#include <tuza/sched/result.h>

#include <chrono>
#include <cstdint>

namespace tuza {

class Context;

namespace rt {
// Until `when_ns` on the monotonic clock; returns at once if that has passed.
void sleep_until_ns(std::int64_t when_ns);
// The context's cause if that ends first; it is asked before the time.
Result<void> sleep_until_ns(const tuza::Context& ctx, std::int64_t when_ns);
}  // namespace rt

template <class Rep, class Period>
void sleep_for(const std::chrono::duration<Rep, Period>& duration) {
  if (duration > duration.zero()) rt::sleep_until_ns(rt::deadline_after(rt::whole_ns(duration)));
}
template <class Duration>
void sleep_until(const std::chrono::time_point<std::chrono::steady_clock, Duration>& when) {
  rt::sleep_until_ns(rt::point_ns(when));
}

// The same, but ends early with the context: with its cause then.
template <class Rep, class Period>
Result<void> sleep_for(const Context& ctx, const std::chrono::duration<Rep, Period>& duration) {
  return rt::sleep_until_ns(ctx, rt::deadline_after(rt::whole_ns(duration)));
}
template <class Duration>
Result<void> sleep_until(const Context& ctx,
                         const std::chrono::time_point<std::chrono::steady_clock, Duration>& when) {
  return rt::sleep_until_ns(ctx, rt::point_ns(when));
}

}  // namespace tuza
