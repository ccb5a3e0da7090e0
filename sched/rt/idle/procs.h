// The Ps: which M holds each P, how many Ps there are, and changing that number while everything runs.
//
// Growing makes new Ps idle. Shrinking retires the surplus: an idle P is emptied at once, a held P when its M
// next comes to the scheduler. No goroutine is stopped, so set_max_procs() may return while a goroutine still
// runs on a P that is about to retire.
//
// Each P that was ever made is in one of three places, and moves between them like this:
//
//     idle (a bit in idle_ps)  <-- put_idle / take -->  held (by an M, or in transit to one)
//           \                                              /
//            `-------->  retired (P::retired)  <-----------'      ids >= max_procs only
//
// A P becomes retired, or stops being retired, under procs_mutex only. That mutex is taken before any other
// lock.
#pragma once

#include <tuza/sched/rt/m.h>

#include <cstdint>

namespace tuza::rt {

struct Sched;

// -- Holding a P.

// Takes an idle P for `m`, which has none; false if there is none.
bool acquire_p(M* m);
// Makes `m` the holder of `p`, which is neither held nor idle.
void hold_p(M* m, P* p);
// Detaches `m` from its P. The caller must then hand the P to another M, or make it idle.
P* release_p(M* m);
// Makes `p`, held by the caller, idle.
void put_idle(Sched& sched, P* p);

// -- The number of Ps.

// Sets the number of Ps to `n`, 1 to kMaxProcsLimit. Thread-safe.
void set_procs(Sched& sched, std::int32_t n);

// Re-reads the CPU limit (rt/idle/cpu_limit.h) and changes the number of Ps if it changed. Called by sysmon.
void follow_cpu_limit(Sched& sched);

// Call when `m` holds a P whose attention flag is set. If that P is surplus, retires it, and `m` then has
// none. False: the P stays.
bool retire_p_if_surplus(M* m);

// A surplus P was made idle while the number of Ps went down: retires it, unless another thread does so.
void retire_idle_p(Sched& sched, P& p);

}  // namespace tuza::rt
