// fork() from a program with goroutines: the child may exec.
//
// The parent. fork() takes the locks of all malloc arenas, of which each M has one, and other locks of the C
// library. Their holders may be suspended in the lane. So sysmon watches a fork: it reads from /proc which lock
// the forking thread waits for, and resumes the holder of the lock if it is known, otherwise all suspended
// threads (rt/slice/lane.cpp). A thread that has forked does not end before its runtime does, because the
// kernel kills children with PR_SET_PDEATHSIG when the thread that started them ends. (vfork() and
// posix_spawn() do not notify the runtime. Our own code calls keep_thread_of_child() before them.)
//
// The child has one thread. Until exec or _exit it may do whatever the child of any program with threads may do.
// Calls that need the scheduler (starting, parking or waking a goroutine) end the child with a message, instead
// of waiting for threads that do not exist. After the child has called exit() it is a program outside
// tuza::run: destructors of statics stop timers, cancel contexts and close sockets, and wake no goroutine.
// A lock of the runtime that another thread of the parent held at the fork is treated as free: the data under
// it may be inconsistent, but the child does not wait for ever.
#pragma once

#include <cstdint>

namespace tuza::rt {

// Registers the handlers; further calls do nothing.
void watch_forks();

// The thread that is in fork() now; if there are several, the one that entered it last. 0: none.
[[nodiscard]] std::int32_t forking_thread();

// Whether this is the child of a process that forked inside tuza::run.
bool is_forked_child();

// Before a vfork() or posix_spawn(), on the same thread: it does not end before its runtime does. Does nothing on a thread
// that is no M.
void keep_thread_of_child();

[[noreturn]] void refuse_in_forked_child();

}  // namespace tuza::rt
