// Parking and readying goroutines: the lowest layer of all waiting. A Wait (sched/sync/detail/wait.h) can also
// end with a context or a deadline, and serves threads. park() is for Wait itself, and for waits that need
// neither.
//
// A primitive has its own wait queue under its own lock:
//
//     lock_.lock();
//     if (available_) { take; lock_.unlock(); return; }
//     waiters_.push_back(rt::current_g());
//     rt::park([](rt::G*, void* lock) { static_cast<RawMutex*>(lock)->unlock(); return true; },
//              &lock_, WaitReason::kMutex);
//
// The waker takes a goroutine off the queue under the lock, and calls ready() after unlocking. A primitive that
// may outlive the runtime also says how the end of the runtime takes a goroutine off the queue (PendingWait).
#pragma once

#include <tuza/sched/wait_reason.h>

namespace tuza::rt {

struct G;
class GList;
struct PendingWait;

// Runs after the goroutine has left its stack, on another stack of the same thread. As soon as the commit makes
// the goroutine visible to wakers, the goroutine may run on another thread: objects on its stack must not be
// accessed after that. False cancels the park: the goroutine continues at once. The commit must not park, and
// should take only a few instructions.
using ParkCommit = bool (*)(G* parked, void* argument);

// Parks the current goroutine until ready() is called for it. May return on another thread. Goroutines only;
// aborts elsewhere. The caller holds no lock except one that `commit` releases. `pending` says how the wait is
// withdrawn if the runtime ends first (detail/pending_wait.h). Null: nothing that outlives the runtime refers to
// the wait.
void park(ParkCommit commit, void* argument, WaitReason reason, PendingWait* pending = nullptr);

// Makes a parked goroutine runnable; the goroutine runs next on this P. Exactly one waker may call it for each
// park; a second call aborts. For any thread. Does not park. The goroutine sees everything that the waker wrote
// before the call.
void ready(G* g);

// Queues goroutines that I/O or a timer has woken and that are already claimed (G::win). They keep their order,
// and queue behind other woken goroutines and before goroutines that were not woken.
void ready(GList&& batch);

// The calling goroutine; null on a thread that runs none.
[[nodiscard]] G* current_g();

}  // namespace tuza::rt
