// fork() from a program with goroutines: the child may exec.
//
// The parent. fork() takes the locks of all arenas of malloc's, of which each M has one, and others of the C library.
// Their holders may be suspended in the lane. So sysmon follows a fork: it learns from /proc which lock it waits for, and
// lets the thread go on that has it, if that is known, or else all (rt/slice/lane.cpp).
// A thread that has forked does not end before its runtime does: the kernel kills children with PR_SET_PDEATHSIG when
// the thread ends that has started them. (vfork() and posix_spawn() do not tell us.)
//
// The child has one thread. Everything up to exec or _exit works there that works after any fork in a
// program with threads. What would need the scheduler (starting a goroutine, parking, waking one) ends the
// child with a message instead of waiting for threads that are not there. Once it has called exit() it is a program
// outside tuza::run: destructors of statics stop timers, cancel contexts and close sockets, and nobody is woken.
// A lock of the runtime's that one of the parent's threads held at the fork is taken as if it were free: what it guards may
// be half done, but nobody waits for ever.
#pragma once

#include <cstdint>

namespace tuza::rt {

// Once per process.
void watch_forks();

// The thread that forks just now; 0: none. Of several the last.
[[nodiscard]] std::int32_t forking_thread();

// Whether this is the child of a process that forked inside tuza::run.
bool is_forked_child();

[[noreturn]] void refuse_in_forked_child();

}  // namespace tuza::rt
