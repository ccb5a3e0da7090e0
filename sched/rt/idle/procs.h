// Who holds a P, how many there are, and changing that while everything runs.
//
// Growing makes new Ps idle. Shrinking retires the surplus: an idle P is emptied at once, a held one when
// its M comes to the scheduler next. Nothing is stopped, so set_max_procs() returns while a goroutine may
// still be running on a P that is about to go.
//
// Each P that was ever made is in one of three places, and moves between them like this:
//
//     idle (a bit in idle_ps)  <-- put_idle / take -->  held (by an M, or on its way to one)
//           \                                              /
//            `-------->  retired (P::retired)  <-----------'      ids >= max_procs only
//
// A P becomes or stops being retired under procs_mutex only, which is taken before any other lock.
#pragma once

#include <tuza/sched/rt/m.h>

#include <cstdint>

namespace tuza::rt {

struct Sched;

// -- Who holds a P.

// Takes an idle P for `m`, which has none; false if there is none.
bool acquire_p(M* m);
// Makes `m` the holder of `p`, which is neither held nor idle.
void hold_p(M* m, P* p);
// Parts `m` from its P, which the caller then gives to somebody or puts to the idle ones.
P* release_p(M* m);
// Makes `p`, held by the caller, idle.
void put_idle(Sched& sched, P* p);

// -- How many there are.

// Makes it `n` Ps, 1 to kMaxProcsLimit. Thread-safe.
void set_procs(Sched& sched, std::int32_t n);

// `m` holds a P that wants attention: if that P is surplus, retires it, and `m` has none then. False: the
// P stays.
bool retire_p_if_surplus(M* m);

// A surplus P was made idle while the number of Ps went down: retires it, unless somebody else does.
void retire_idle_p(Sched& sched, P& p);

}  // namespace tuza::rt
