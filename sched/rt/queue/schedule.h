// Decides which goroutine runs next.
//
// pick_local() is the fast path, and runs on the stack of the goroutine that is about to leave. If the P has
// a next goroutine and nothing else needs attention, the switch goes straight to that goroutine. Everything
// else happens on g0, in schedule_loop(): find_runnable() goes through all sources in order, and finally goes
// idle.
#pragma once

#include <tuza/sched/rt/m.h>
#include <tuza/sched/rt/p.h>

namespace tuza::rt {

// The number of picks between two rounds of housekeeping, in which a P serves the GRQ first, beginning at its
// last level or, alternately, at kNew, reads the clock, and polls.
inline constexpr std::uint64_t kHousekeepingPicks = 61;
inline bool wants_housekeeping(const P& p) {
  return p.picks.get() % kHousekeepingPicks == kHousekeepingPicks - 1;
}
// The maximum number of consecutive picks from runnext while other goroutines wait in the queue.
inline constexpr std::uint32_t kRunnextStreakMax = 61;
// The last of this many picks takes new goroutines of the LRQ before woken ones.
inline constexpr std::uint64_t kNewFirstPicks = 8;

// Returns the next goroutine of the P that `m` holds; null if finding one takes more than the local queues.
G* pick_local(M* m);

// Takes a goroutine from runnext or the LRQ of the P that `m` holds, or a woken one from the GRQ; null if all
// are empty.
G* take_queued(M* m);

// The main loop of g0: runs goroutines until the runtime stops or the thread is spent.
void schedule_loop(M* m);

// Finds the next goroutine for `m`, which must hold a P and holds one on return. Waits as long as necessary.
// Returns null when the runtime stops.
G* find_runnable(M* m);

// Tries to steal work from other Ps; `m` counts as spinning from then on. Returns null if there is no work,
// or if enough Ms are spinning already.
G* steal(M* m);

// Counts `m`, which holds a P, as spinning, unless the spinning Ms are already half as many as the busy Ps
// (rule 5).
bool try_spinning(M* m);

}  // namespace tuza::rt
