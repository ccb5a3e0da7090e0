// fork() from a program with goroutines: the child may exec.
//
// The child has one thread. Everything up to exec or _exit works there that works after any fork in a
// program with threads. What would need the scheduler (starting a goroutine, parking, waking one) ends the
// child with a message instead of waiting for threads that are not there.
#pragma once

namespace tuza::rt {

// Once per process: children will know.
void watch_forks();

// Whether this is the child of a process that forked inside tuza::run.
bool is_forked_child();

[[noreturn]] void refuse_in_forked_child();

}  // namespace tuza::rt
