// Ms without work: how they go idle, sleep, and are woken. idle.cpp describes the protocol and why it is
// correct.
#pragma once

#include <tuza/sched/rt/m.h>
#include <tuza/sched/rt/p.h>

namespace tuza::rt {

struct Sched;

// Whether an M with a P would find work. (I3)
bool work_visible(const Sched& sched);

// Wakes one M to look for work, unless an M is spinning already or no P is idle. Call after making work
// visible where other Ms can find it. Any thread. Does not block.
void wake_one(Sched& sched);

// The M has found no work: gives its P up, and waits as wait_for_p() does.
bool go_idle(M* m);

// The M has no P: checks whether there is work for one more M, and waits until there is. True: the M holds a
// P and should look for work. False: the runtime stops, or this thread retires.
bool wait_for_p(M* m);

// A spinning M has found work. Wakes another M if there is more.
void stop_spinning(M* m);

// Marks the end of the start of a new M, which until then counts as neither idle nor busy.
void has_started(M* m);
// The same for an M that was meant to be a spare one, and has found work.
void starts_with_work(M* m);

// Hands `p`, held by the caller, to an M if there may be work for it, else makes it idle.
void hand_off_p(Sched& sched, P* p);

// Wakes an idle M without a P: it checks all sources, and waits for timers and I/O if no other thread does.
void nudge_idle_m(Sched& sched);

// Ends the threads of Ms that have been idle ever since the last call, except `keep` of them.
void retire_idle_ms(Sched& sched, std::uint32_t keep);

// Wakes the idle M `m` and gives it `p`.
void wake_with_p(M* m, P* p, bool spinning);

}  // namespace tuza::rt
