// lock_os_thread: a goroutine that owns its thread.
//
// A locked goroutine runs on its M only, and that M runs nothing else. When it parks, its M gives the P away
// and sleeps; when another M picks it from a queue, that M hands it the P and goes to look for another one.
#pragma once

#include <tuza/sched/rt/m.h>

namespace tuza::rt {

// On the locked M, whose goroutine has left its stack: waits until that goroutine may run, with a P. Null
// when the runtime stops.
G* wait_for_locked_g(M* m);

// `m` has picked `g`, which is locked to another M: passes its P on to that one.
void hand_to_locked_m(M* m, G* g);

}  // namespace tuza::rt
