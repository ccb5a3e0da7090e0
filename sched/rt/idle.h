// Who wakes an idle thread? Everything about Ms without work: going idle, sleeping, being woken.
// The protocol and its argument are in idle.cpp.
#pragma once

#include <tuza/sched/rt/m.h>
#include <tuza/sched/rt/p.h>

namespace tuza::rt {

struct Sched;

// Wakes one M to look for work, unless one is looking already or there is no idle P. Called after work was
// made visible where others can find it. Any thread. Does not block.
void wake_one(Sched& sched);

// The M has found nothing: gives its P up, makes sure that nothing was missed, and waits. True: it holds a
// P again and should look for work. False: the runtime stops, or the thread is spent.
bool go_idle(M* m);

// Waits without a P, as go_idle() does at its end.
bool wait_for_p(M* m);

// An M that looked for work has found some. Wakes another if there is more.
void stop_spinning(M* m);

// Takes an idle P for `m`, which has none; false if there is none.
bool acquire_p(M* m);
// Parts `m` from its P, which the caller then gives to somebody or puts to the idle ones.
P* release_p(M* m);
// Makes `p`, held by the caller, idle.
void put_idle(Sched& sched, P* p);
// Gives `p`, held by the caller, to an M if there may be work for it, else makes it idle.
void hand_off_p(Sched& sched, P* p);

// Wakes the idle M `m` with `p`.
void wake_with_p(M* m, P* p, bool spinning);

}  // namespace tuza::rt
