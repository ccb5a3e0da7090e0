// A monotonic clock for frequent readers: a read costs one memory access.
//
// The clock is advanced whenever the scheduler reads the real clock: when it polls, every 61 goroutines, and
// by sysmon. It never runs ahead of the real clock. It lags by a millisecond or two under load, by ten at
// most. Any thread; outside tuza::run it is the real clock.
#pragma once

#include <cstdint>

namespace tuza {

// Nanoseconds of CLOCK_MONOTONIC.
[[nodiscard]] std::int64_t coarse_now_ns();

}  // namespace tuza
