// The end of a program that destroys something while somebody waits for it.
#pragma once

#include <tuza/sched/sync/detail/wait.h>

#include <string_view>

namespace tuza::rt {

// For destructors. Aborts if anybody is in one of the queues that `lock` guards: "Mutex destroyed while goroutines
// wait for it: goroutine 17 (conn), a thread, and 3 more", with the stack of the caller. `what` is the type.
//
// Goroutines that the end of a runtime has left behind wait for nothing any more (rt/lifecycle/abandon.h). In the child of a
// fork nobody waits: the queues, and the lock, are those of the parent as they happened to be.
void check_nobody_waits(std::string_view what, SpinLock& lock, const WaitQueue& queue);
void check_nobody_waits(std::string_view what, SpinLock& lock, const WaitQueue& queue,
                        const WaitQueue& second);

}  // namespace tuza::rt
