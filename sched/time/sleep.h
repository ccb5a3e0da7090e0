// Sleeping: the goroutine waits, the thread works on.
//
//     tuza::sleep_for(250ms);
//     tuza::sleep_until(std::chrono::steady_clock::now() + 1s);
//
// Monotonic time. Never wakes early; late by what the scheduler needs, normally well under a millisecond.
// Parks. Goroutines only. No allocation.
#pragma once

#include <chrono>
#include <cstdint>

namespace tuza {

namespace rt {
// Until `when_ns` on the monotonic clock; returns at once if that has passed.
void sleep_until_ns(std::int64_t when_ns);
// The monotonic clock's end of time: what sums of absurdly long durations are cut to.
std::int64_t deadline_after(std::chrono::nanoseconds duration);
}  // namespace rt

template <class Rep, class Period>
void sleep_for(const std::chrono::duration<Rep, Period>& duration) {
  if (duration > duration.zero()) {
    rt::sleep_until_ns(rt::deadline_after(std::chrono::ceil<std::chrono::nanoseconds>(duration)));
  }
}

template <class Duration>
void sleep_until(const std::chrono::time_point<std::chrono::steady_clock, Duration>& when) {
  rt::sleep_until_ns(std::chrono::ceil<std::chrono::nanoseconds>(when.time_since_epoch()).count());
}

}  // namespace tuza
