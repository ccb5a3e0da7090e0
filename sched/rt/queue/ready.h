// Making goroutines runnable, and deciding whether that deserves another M.
#pragma once

#include <tuza/sched/rt/m.h>
#include <tuza/sched/rt/queue/g_list_inline.h>
#include <tuza/sched/rt/queue/global_queues.h>

namespace tuza::rt {

struct P;
struct Sched;

// -- For holders of a P.

// Puts a runnable goroutine into runnext; the one that was there goes to the tail of the queue (rule 1).
void put_next(Sched& sched, P& p, M* m, G* g);
// Puts runnable goroutines at the tail of the LRQ of their level.
void put_last(Sched& sched, P& p, M* m, G* g, Level level);
// The same for a batch, in its order: what finds no room goes to the GRQ, and so does all if others wait there, who
// would be overtaken by each batch that the poller brings.
void put_last_in_order(Sched& sched, P& p, M* m, GList&& batch, Level level);

// Moves all that is queued on `p` to the GRQ.
void empty_queues(Sched& sched, P& p);

// -- For anyone.

// Queues runnable goroutines that belong to no P, and wakes an M for them.
void inject(Sched& sched, G* g, Level level);
void inject(Sched& sched, GList&& batch, Level level);

// A park was taken back: makes the goroutine runnable on this M.
void unpark(M* m, G* g);

// Wakes an M if what is queued here is worth the cost of a wake-up (rule 6). For the holder of `p`.
void wake_if_it_pays(Sched& sched, const P& p);

}  // namespace tuza::rt
