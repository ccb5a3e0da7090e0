// Which goroutine runs next?
//
// pick_local() is the fast path, taken on the goroutine that is about to leave: if the P has a next
// goroutine and nothing else wants attention, the switch goes straight to it. Everything else happens on
// g0, in schedule_loop(): find_runnable() goes through all sources in order and ends by idling.
#pragma once

#include <tuza/sched/rt/m.h>
#include <tuza/sched/rt/p.h>

namespace tuza::rt {

// Every so many picks a P does housekeeping: looks at the GRQ first, from its last level on, reads the clock,
// polls.
inline constexpr std::uint64_t kHousekeepingPicks = 61;
inline bool wants_housekeeping(const P& p) {
  return p.picks.get() % kHousekeepingPicks == kHousekeepingPicks - 1;
}
// So many picks in a row may come from runnext while others wait in the queue.
inline constexpr std::uint32_t kRunnextStreakMax = 61;
// Of so many picks the last takes from the new goroutines of the LRQ before those that were woken.
inline constexpr std::uint64_t kNewFirstPicks = 8;

// The next goroutine of the P that `m` holds; null if finding it takes more than a look at the local queue.
G* pick_local(M* m);

// Takes from runnext or the LRQ of the P that `m` holds; null if both are empty.
G* take_queued(M* m);

// g0's life: runs goroutines until the runtime stops or the thread is spent.
void schedule_loop(M* m);

// The next goroutine for `m`, which holds a P and holds one when this returns; null when the runtime
// stops. Waits for as long as it takes.
G* find_runnable(M* m);

// Tries to get work from other Ps; counts as spinning from then on. Null if there is none, or if enough Ms
// spin already.
G* steal(M* m);

// Counts `m`, which holds a P, as spinning, unless half as many Ms as Ps are busy do so already (rule 5).
bool try_spinning(M* m);

}  // namespace tuza::rt
