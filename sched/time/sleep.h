// Public header, part of <tuza/time.h>.
//
// Sleeping: the goroutine waits, while its thread runs other goroutines.
//
//     tuza::sleep_for(250ms);
//     tuza::sleep_until(std::chrono::steady_clock::now() + 1s);
//
// Uses tuza::now(), monotonic. A sleep never ends early. It ends late by what the scheduler needs, normally
// well under a millisecond. Parks. No allocation. Goroutines only; with a Context, threads too.
//
// All times saturate, in any unit: a time beyond the clock's end of time, in 292 years, becomes that moment;
// a time in the past is now; NaN means no wait at all.
#pragma once

#include <tuza/sched/detail/deadline.h>
#include <tuza/sched/result.h>

#include <chrono>
#include <cstdint>

namespace tuza {

class Context;

namespace rt {
// Sleeps until `when_ns` on the monotonic clock; returns at once if that time has passed.
void sleep_until_ns(std::int64_t when_ns);
// Returns the context's cause if the context ends first; the context is checked before the time.
[[nodiscard]] Result<void> sleep_until_ns(const tuza::Context& ctx, std::int64_t when_ns);
}  // namespace rt

template <class Rep, class Period>
void sleep_for(const std::chrono::duration<Rep, Period>& duration) {
  if (duration > duration.zero()) rt::sleep_until_ns(rt::deadline_after(rt::whole_ns(duration)));
}
template <class Duration>
void sleep_until(const std::chrono::time_point<std::chrono::steady_clock, Duration>& when) {
  rt::sleep_until_ns(rt::point_ns(when));
}

// The same, but ends early when the context ends, and returns its cause.
template <class Rep, class Period>
[[nodiscard]] Result<void> sleep_for(const Context& ctx, const std::chrono::duration<Rep, Period>& duration) {
  return rt::sleep_until_ns(ctx, rt::deadline_after(rt::whole_ns(duration)));
}
template <class Duration>
[[nodiscard]] Result<void> sleep_until(
    const Context& ctx, const std::chrono::time_point<std::chrono::steady_clock, Duration>& when) {
  return rt::sleep_until_ns(ctx, rt::point_ns(when));
}

}  // namespace tuza
