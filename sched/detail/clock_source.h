// The clock of all waits in sched/time and sched/sync, and the timers on it: the monotonic clock, or the
// fake clock while a tuza::testing::FakeClock lives.
//
// The scheduler itself, and the timers of sockets, always use the real clock (rt/base/clock.h): a socket's deadline is
// given on this clock, and kept as what remains until then (netpoll/poll/deadline.h).
//
// Thread-safe, does not park. Without a fake clock these functions cost one relaxed load more than the real
// clock's: a fake clock must be created before the goroutines that it governs.
#pragma once

#include <tuza/sched/detail/runtime_timer.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {

// Nanoseconds of the clock.
[[nodiscard]] std::int64_t clock_now_ns();

// The same with the lag of coarse_now_ns() (sched/detail/coarse_clock.h), and nearly for free: for times far ahead.
[[nodiscard]] std::int64_t clock_coarse_ns();

// A time further than this ahead of coarse_now_ns() has certainly not come yet, however coarse that clock is. A fake clock
// may be anywhere: while there is one, no time is that far ahead. One load for a reader that must be fast, instead of the
// question which clock there is.
inline constexpr std::int64_t kClockNearNs = 1'000'000'000;
inline std::atomic<std::int64_t> clock_near_ns{
    kClockNearNs};  // relaxed: as clock_is_fake(); written by FakeTime

// Whether a fake clock is currently installed.
[[nodiscard]] bool clock_is_fake();

// Like timer_arm() and timer_stop(). The owner of a timer may use either pair at any time.
Armed clock_arm(Timer& timer, std::int64_t when_ns);
bool clock_stop(Timer& timer);

}  // namespace tuza::rt
