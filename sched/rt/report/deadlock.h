// "all goroutines are asleep - deadlock!"
//
// When no goroutine runs or is runnable, and nothing can ever wake one (no timer, no goroutine waiting for
// I/O, no external thread that promised to), the program can only hang. The last M to go idle says so
// instead: every goroutine with its wait reason, age, stack and creator; exit status 2, as in Go.
#pragma once

namespace tuza::rt {

struct Sched;

// Whether all goroutines wait, and nothing but a timer can wake one. False, too, if somebody has to be
// fetched out of the poller before it can be known: who is fetched asks again.
bool stands_still(Sched& sched);

// Called by an M without a P, about to sleep. Does not return if the program is deadlocked.
void report_deadlock_if_any(Sched& sched);

}  // namespace tuza::rt
