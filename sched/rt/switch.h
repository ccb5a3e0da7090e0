// Switching between goroutines.
//
// A switch leaves the current context and goes to another on the same M: to a goroutine directly, or to g0,
// the scheduler. Whatever must happen to the goroutine that was left (queue it, tell its waker, free it)
// happens on the other side, once its context is saved: the commit. Publishing it earlier is the classic
// bug of M:N schedulers: another M resumes a context that is still being written.
//
// The caller is inside the runtime (rt/enter.h); after the switch it may be on another M.
#pragma once

#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/m.h>

namespace tuza::rt {

// What becomes of the goroutine that is left.
struct Leave {
  GStatus becomes;
  PendingCommit::Function commit;
  void* argument;
};

// The M of the goroutine that calls, which is about to leave it. Ends the process where no goroutine may: on another
// thread, inside the scheduler, in debug builds under a std::mutex.
M* require_goroutine(const Enter& rt);

// Leaves the current goroutine of `m` for `to`: m->g0, or a runnable goroutine in the caller's hands.
// Returns when the goroutine runs again; never, if it became kDead.
void switch_to(M* m, G* to, const Leave& leave);

// From g0 to a runnable goroutine in the caller's hands. Returns when some goroutine on this M switches
// to g0.
void switch_from_g0(M* m, G* to);

// Leaves the current goroutine for the next one of this P, or for g0 if that takes more than a look at the
// local queue.
void switch_to_next(M* m, const Leave& leave);

// The first call of a new goroutine: completes the switch that brought it here.
void complete_first_switch();

}  // namespace tuza::rt
