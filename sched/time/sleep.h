// Sleeping: the goroutine waits, the thread works on.
//
//     tuza::sleep_for(250ms);
//     tuza::sleep_until(std::chrono::steady_clock::now() + 1s);
//
// By tuza::now(), monotonic. Never wakes early; late by what the scheduler needs, normally well under a
// millisecond. Parks. No allocation. Goroutines only; with a Context, threads too.
#pragma once

#include <tuza/sched/result.h>

#include <chrono>
#include <cstdint>
#include <ratio>
#include <type_traits>

namespace tuza {

class Context;

namespace rt {
// Until `when_ns` on the monotonic clock; returns at once if that has passed.
void sleep_until_ns(std::int64_t when_ns);
// The monotonic clock's end of time: what sums of absurdly long durations are cut to.
std::int64_t deadline_after(std::chrono::nanoseconds duration);
// The context's cause if that ends first; it is asked before the time.
Result<void> sleep_until_ns(const tuza::Context& ctx, std::int64_t when_ns);

// Rounded up, and cut to what nanoseconds can say.
template <class Rep, class Period>
std::chrono::nanoseconds whole_ns(const std::chrono::duration<Rep, Period>& duration) {
  using std::chrono::nanoseconds;
  if constexpr (std::ratio_less_equal_v<Period, std::nano> && !std::is_floating_point_v<Rep>) {
    return std::chrono::ceil<nanoseconds>(duration);
  } else {
    const std::chrono::duration<long double, std::nano> exact(duration);
    if (exact >= std::chrono::duration<long double, std::nano>(nanoseconds::max())) return nanoseconds::max();
    if (exact <= std::chrono::duration<long double, std::nano>(nanoseconds::min())) return nanoseconds::min();
    return std::chrono::ceil<nanoseconds>(duration);
  }
}
}  // namespace rt

template <class Rep, class Period>
void sleep_for(const std::chrono::duration<Rep, Period>& duration) {
  if (duration > duration.zero()) rt::sleep_until_ns(rt::deadline_after(rt::whole_ns(duration)));
}
template <class Duration>
void sleep_until(const std::chrono::time_point<std::chrono::steady_clock, Duration>& when) {
  rt::sleep_until_ns(rt::whole_ns(when.time_since_epoch()).count());
}

// The same, but ends early with the context: with its cause then.
template <class Rep, class Period>
Result<void> sleep_for(const Context& ctx, const std::chrono::duration<Rep, Period>& duration) {
  return rt::sleep_until_ns(ctx, rt::deadline_after(rt::whole_ns(duration)));
}
template <class Duration>
Result<void> sleep_until(const Context& ctx,
                         const std::chrono::time_point<std::chrono::steady_clock, Duration>& when) {
  return rt::sleep_until_ns(ctx, rt::whole_ns(when.time_since_epoch()).count());
}

}  // namespace tuza
