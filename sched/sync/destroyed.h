// The end of a program that destroys something while somebody waits for it.
#pragma once

#include <tuza/sched/sync/wait.h>

#include <string_view>

namespace tuza::rt {

// "Mutex destroyed while goroutines wait for it: goroutine 17 (conn), a thread, and 3 more", with the stack
// of the caller; aborts. `what` is the type. Holds no lock: nothing of what follows matters.
[[noreturn, gnu::cold]] void destroyed_with_waiters(std::string_view what, const WaitQueue& queue);

}  // namespace tuza::rt
