// Switching between goroutines.
//
// A switch leaves the current context for another on the same M: for a goroutine directly, or for g0, the
// scheduler. What must be done with the goroutine that was left (queue it, show it to its waker, free it) is
// done on the other side, after its context is saved. This is the commit. Publishing the goroutine earlier is
// the classic bug of M:N schedulers: another M resumes a context that is still being written.
//
// The caller is inside the runtime (rt/enter.h). After the switch it may be on another M.
#pragma once

#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/m.h>

namespace tuza::rt {

// What happens to the goroutine that is left.
struct Leave {
  GStatus becomes;
  PendingCommit::Function commit;
  void* argument;
};

// Returns the M of the calling goroutine, which is about to leave it. Ends the process where no goroutine may
// leave: on a thread that is not an M, inside the scheduler, and, in debug builds, under a std::mutex.
M* require_goroutine(const Enter& rt);

// Leaves the current goroutine of `m` for `to`: m->g0, or a runnable goroutine that the caller holds. Returns
// when the goroutine runs again; never if it became kDead.
void switch_to(M* m, G* to, const Leave& leave);

// Switches from g0 to a runnable goroutine that the caller holds. Returns when a goroutine on this M switches
// to g0.
void switch_from_g0(M* m, G* to);

// Leaves the current goroutine for the next one in the local queue of this P, or for g0 if the next one has to
// be searched for.
void switch_to_next(M* m, const Leave& leave);

// Completes the switch that started a new goroutine. The goroutine calls it first.
void complete_first_switch();

}  // namespace tuza::rt
