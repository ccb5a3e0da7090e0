// The deadlock report: "all goroutines are asleep - deadlock!"
//
// When no goroutine runs or is runnable, and nothing can ever wake one (no timer, no goroutine waiting for I/O, no
// ExternalWaker, no thread that the runtime does not know), the program can only hang. Instead, the last M to go idle
// reports every goroutine with its wait reason, age, stack and creator, and ends the process with status 2, as in Go.
//
// Foreign threads (rt/base/foreign_threads.h) are counted only when all goroutines wait. While there is one, sysmon looks
// again later (rt/report/deadlock_watch.h). The report is exact: before the count and after it all goroutines wait, and
// none has run in between; so none can have made a foreign thread after the count, and none that ended before it has
// woken a goroutine.
#pragma once

namespace tuza::rt {

struct Sched;

// Whether all goroutines wait, and only a timer can wake one. Also returns false if a thread must leave the
// poller before the answer is known: the call wakes that thread, which checks again.
bool stands_still(Sched& sched);

// Called by an M without a P that is about to sleep. Does not return if the program is deadlocked.
void report_deadlock_if_any(Sched& sched);

// Sysmon looks whether foreign threads still exist beside the standstill that is watched. If not, an M reports it.
void look_for_deadlock_again(Sched& sched);

}  // namespace tuza::rt
