// What time it is, and timers that go by it, for all that waits in sched/time and sched/sync: the monotonic
// clock, or the fake one while a tuza::testing::FakeClock lives.
//
// Deadlines of network connections, and the scheduler itself, stay with the real clock (rt/base/clock.h).
//
// Thread-safe, does not park. Without a fake clock it costs one relaxed load more than what it stands for:
// who creates a fake clock does so before the goroutines that it shall govern.
#pragma once

#include <tuza/sched/detail/runtime_timer.h>

#include <cstdint>

namespace tuza::rt {

// Nanoseconds of the clock.
[[nodiscard]] std::int64_t clock_now_ns();

// Whether it is the fake one just now.
[[nodiscard]] bool clock_is_fake();

// As timer_arm() and timer_stop(). The owner of a timer may use either pair at any time.
Armed clock_arm(Timer& timer, std::int64_t when_ns);
bool clock_stop(Timer& timer);

}  // namespace tuza::rt
