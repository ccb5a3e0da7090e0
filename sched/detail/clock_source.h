// The clock of all waits in sched/time and sched/sync, and the timers on it: the monotonic clock, or the
// fake clock while a tuza::testing::FakeClock lives.
//
// Deadlines of network connections, and the scheduler itself, always use the real clock (rt/base/clock.h).
//
// Thread-safe, does not park. Without a fake clock these functions cost one relaxed load more than the real
// clock's: a fake clock must be created before the goroutines that it governs.
#pragma once

#include <tuza/sched/detail/runtime_timer.h>

#include <cstdint>

namespace tuza::rt {

// Nanoseconds of the clock.
[[nodiscard]] std::int64_t clock_now_ns();

// Whether a fake clock is currently installed.
[[nodiscard]] bool clock_is_fake();

// Like timer_arm() and timer_stop(). The owner of a timer may use either pair at any time.
Armed clock_arm(Timer& timer, std::int64_t when_ns);
bool clock_stop(Timer& timer);

}  // namespace tuza::rt
