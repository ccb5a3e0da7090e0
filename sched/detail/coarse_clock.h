// A monotonic clock for those who look often: one memory read.
//
// Advanced whenever the scheduler looks at the real clock: when it polls, every 61 goroutines, by sysmon. It
// never runs ahead, and lags by a millisecond or two under load, by ten at most. Any thread; outside
// tuza::run it is the real clock.
#pragma once

#include <cstdint>

namespace tuza {

// Nanoseconds of CLOCK_MONOTONIC.
[[nodiscard]] std::int64_t coarse_now_ns();

}  // namespace tuza
