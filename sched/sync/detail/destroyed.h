// Aborts a program that destroys a primitive while others wait for it.
#pragma once

#include <tuza/sched/sync/detail/wait.h>

#include <string_view>

namespace tuza::rt {

// For destructors. Aborts if there are waiters in the queues that `lock` guards, with the stack of the
// caller: "Mutex destroyed while goroutines wait for it: goroutine 17 (conn), a thread, and 3 more". `what`
// is the type.
//
// Goroutines that the end of a runtime has left behind no longer wait (rt/lifecycle/abandon.h). In the child
// of a fork nobody waits: the queues and the lock are copies of the parent's, in an arbitrary state.
void check_nobody_waits(std::string_view what, SpinLock& lock, const WaitQueue& queue);
void check_nobody_waits(std::string_view what, SpinLock& lock, const WaitQueue& queue,
                        const WaitQueue& second);

}  // namespace tuza::rt
