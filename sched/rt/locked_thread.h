// lock_os_thread: a goroutine that owns its thread.
//
// A locked goroutine runs only on its M, and that M runs no other goroutine. When the goroutine parks, its M
// gives the P away and sleeps. An M that picks the goroutine from a queue hands its own P to the locked M, and
// searches for another P.
#pragma once

#include <tuza/sched/rt/m.h>

namespace tuza::rt {

// Called on the locked M after its goroutine has left its stack: waits until the goroutine may run, and the M
// has a P. Null when the runtime ends.
G* wait_for_locked_g(M* m);

// `m` has picked `g`, which is locked to another M: hands the P of `m` to that M.
void hand_to_locked_m(M* m, G* g);

}  // namespace tuza::rt
