// Who wakes an idle thread? Everything about Ms without work: going idle, sleeping, being woken.
// The protocol and its argument are in idle.cpp.
#pragma once

#include <tuza/sched/rt/m.h>
#include <tuza/sched/rt/p.h>

namespace tuza::rt {

struct Sched;

// Whether an M with a P would find something. (I3)
bool work_visible(const Sched& sched);

// Wakes one M to look for work, unless one is looking already or there is no idle P. Called after work was
// made visible where others can find it. Any thread. Does not block.
void wake_one(Sched& sched);

// The M has found nothing: gives its P up and waits as below.
bool go_idle(M* m);

// The M has no P: looks whether there is work for another one, and waits until there is. True: it holds a
// P and should look for work. False: the runtime stops.
bool wait_for_p(M* m);

// An M that looked for work has found some. Wakes another if there is more.
void stop_spinning(M* m);

// A new M is neither idle nor at work until it comes here.
void has_started(M* m);

// Gives `p`, held by the caller, to an M if there may be work for it, else makes it idle.
void hand_off_p(Sched& sched, P* p);

// Wakes an idle M without a P: it looks around, and waits for timers and I/O if nobody else does.
void nudge_idle_m(Sched& sched);

// Ends the threads of Ms that have been idle all the time since the last call, but for `keep` of them.
void retire_idle_ms(Sched& sched, std::uint32_t keep);

// Wakes the idle M `m` with `p`.
void wake_with_p(M* m, P* p, bool spinning);

}  // namespace tuza::rt
