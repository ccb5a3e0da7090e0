// The deadlock report: "all goroutines are asleep - deadlock!"
//
// When no goroutine runs or is runnable, and nothing can ever wake one (no timer, no goroutine waiting for
// I/O, no external thread that promised to), the program can only hang. Instead, the last M to go idle
// reports every goroutine with its wait reason, age, stack and creator, and ends the process with status 2,
// as in Go.
#pragma once

namespace tuza::rt {

struct Sched;

// Whether all goroutines wait, and only a timer can wake one. Also returns false if a thread must leave the
// poller before the answer is known: the call wakes that thread, which checks again.
bool stands_still(Sched& sched);

// Called by an M without a P that is about to sleep. Does not return if the program is deadlocked.
void report_deadlock_if_any(Sched& sched);

}  // namespace tuza::rt
