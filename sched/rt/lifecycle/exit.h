// Handles exit() inside tuza::run: the runtime ends first, then the destructors of statics run.
//
// A static channel or lock therefore has no goroutine in its queue when it is destroyed, and no goroutine runs
// in parallel with the destructors, except those that do not come back to the scheduler in time, as at any
// end. The thread that calls exit() stays where it is, perhaps on a goroutine's stack. From then on it is an
// ordinary thread: a call that would park blocks it. The thread that called tuza::run does not return from it.
//
// If a goroutine's thread calls exit(), the runtime learns of it when the thread_locals of this thread are
// destroyed, which is before all statics. If any other thread does, the runtime learns of it by an atexit()
// handler of the first run, which runs before the destruction of the statics that were made before this run.
#pragma once

namespace tuza::rt {

// Registers the atexit() handler, once per process.
void watch_exit();

// Called by the thread of each M when the thread ends or calls exit().
void thread_ends();

}  // namespace tuza::rt
