// Converts the times that users pass into the runtime's: nanoseconds of the monotonic clock, clamped to
// their range.
//
// Never overflows: a time beyond the end of time becomes the end of time, and waits for ever.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ratio>
#include <type_traits>

namespace tuza::rt {

// The last moment of the monotonic clock, in 292 years. Later times, "for ever" among them, are clamped to
// it; one more nanosecond means "no timer" inside the runtime.
inline constexpr std::int64_t kEndOfTimeNs = std::numeric_limits<std::int64_t>::max() - 1;
// `base_ns` + `duration`, clamped to the range.
constexpr std::int64_t time_after(std::int64_t base_ns, std::chrono::nanoseconds duration) {
  if (duration.count() > 0 && base_ns > kEndOfTimeNs - duration.count()) return kEndOfTimeNs;
  if (duration.count() < 0 && base_ns < std::numeric_limits<std::int64_t>::min() - duration.count()) {
    return std::numeric_limits<std::int64_t>::min();
  }
  return base_ns + duration.count();
}
// `duration` from now.
std::int64_t deadline_after(std::chrono::nanoseconds duration);

// Rounds up, and clamps to the range of nanoseconds. NaN becomes zero.
template <class Rep, class Period>
std::chrono::nanoseconds whole_ns(const std::chrono::duration<Rep, Period>& duration) {
  using std::chrono::nanoseconds;
  if constexpr (std::ratio_less_equal_v<Period, std::nano> && !std::is_floating_point_v<Rep>) {
    return std::chrono::ceil<nanoseconds>(duration);
  } else {
    const std::chrono::duration<long double, std::nano> exact(duration);
    if (std::isnan(exact.count())) return nanoseconds::zero();
    if (exact >= std::chrono::duration<long double, std::nano>(nanoseconds::max())) return nanoseconds::max();
    if (exact <= std::chrono::duration<long double, std::nano>(nanoseconds::min())) return nanoseconds::min();
    return std::chrono::ceil<nanoseconds>(duration);
  }
}
template <class Duration>
std::int64_t point_ns(const std::chrono::time_point<std::chrono::steady_clock, Duration>& when) {
  return std::min<std::int64_t>(whole_ns(when.time_since_epoch()).count(), kEndOfTimeNs);
}

// Parameter types that accept any duration and any point of the steady clock. A conversion by the caller
// would overflow for hours::max().
struct AnyDuration {
  template <class Rep, class Period>
  AnyDuration(const std::chrono::duration<Rep, Period>& any) : duration(whole_ns(any)) {}
  std::chrono::nanoseconds duration;
};
struct AnyTimePoint {
  template <class Duration>
  AnyTimePoint(const std::chrono::time_point<std::chrono::steady_clock, Duration>& any) : ns(point_ns(any)) {}
  std::int64_t ns;
};
}  // namespace tuza::rt
