// Parking and readying goroutines: the lowest step of all waiting. What is built on Wait (sched/sync/detail/wait.h)
// can end with a context or a deadline too, and serves threads; this is for what needs neither, and for Wait
// itself.
//
// A primitive keeps a wait queue of its own under a lock of its own:
//
//     lock_.lock();
//     if (available_) { take; lock_.unlock(); return; }
//     waiters_.push_back(rt::current_g());
//     rt::park([](rt::G*, void* lock) { static_cast<RawMutex*>(lock)->unlock(); return true; },
//              &lock_, WaitReason::kMutex);
//
// and the waker takes a goroutine off the queue under the lock and calls ready() after unlocking. If the primitive
// may outlive the runtime, it says as well how the end takes a goroutine off its queue (PendingWait).
#pragma once

#include <tuza/sched/wait_reason.h>

namespace tuza::rt {

struct G;
class GList;
struct PendingWait;

// Runs after the goroutine has left its stack, on another stack of the same thread. From the moment it
// makes the goroutine visible to wakers, the goroutine may run again elsewhere: whatever lives on its stack
// must not be touched after that. Returns false to take the park back: the goroutine goes on at once.
// It must not park, and should take a few instructions.
using ParkCommit = bool (*)(G* parked, void* argument);

// Parks the current goroutine until ready() is called for it. May return on another thread.
// Called on a goroutine only; aborts elsewhere. The caller holds no lock but one that `commit` releases.
// `pending` says how the wait is withdrawn if the runtime ends before it (detail/pending_wait.h). Null: nothing that
// outlives the runtime knows of the wait.
void park(ParkCommit commit, void* argument, WaitReason reason, PendingWait* pending = nullptr);

// Makes a parked goroutine runnable; it runs next on this P. Exactly one waker may call it for each park;
// a second one aborts. Any thread. Does not park. What the waker wrote before is visible to the goroutine.
void ready(G* g);

// Queues goroutines that were claimed (G::win) already, woken by I/O or a timer, in order, behind others of
// their kind and before those that nobody has woken.
void ready(GList&& batch);

// The goroutine that calls; null on a thread that runs none.
[[nodiscard]] G* current_g();

}  // namespace tuza::rt
