// exit() inside tuza::run: the runtime ends first, then the destructors of statics run.
//
// So a static channel or lock finds nobody in its queue, and no goroutine runs beside them, but for those that do not
// come back to the scheduler in time, as at any end. The thread that calls exit() stays where it is, on a goroutine's
// stack perhaps, and is from then on a thread like others: a call that would park blocks it. The thread that called
// tuza::run does not return from it.
//
// A goroutine's thread learns of exit() when its thread_locals are destroyed, which is before all statics; the process
// at large by an atexit() handler of the first run, which is before the statics that were made before that.
#pragma once

namespace tuza::rt {

// Once per process.
void watch_exit();

// By each M's thread when it ends or calls exit().
void thread_ends();

}  // namespace tuza::rt
