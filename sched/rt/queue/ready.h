// Makes goroutines runnable, and decides whether that warrants waking another M.
#pragma once

#include <tuza/sched/rt/m.h>
#include <tuza/sched/rt/queue/g_list_inline.h>
#include <tuza/sched/rt/queue/global_queues.h>

namespace tuza::rt {

struct P;
struct Sched;

// -- Only for the holder of a P.

// Puts a runnable goroutine into runnext; the goroutine that was there goes to the tail of the queue (rule
// 1).
void put_next(Sched& sched, P& p, M* m, G* g);
// Puts a runnable goroutine at the tail of the LRQ of its level.
void put_last(Sched& sched, P& p, M* m, G* g, Level level);
// Does the same for a batch, in its order. Goroutines that find no room go to the GRQ. If others already wait
// there, the whole batch goes to the GRQ, or each batch from the poller would overtake those others.
void put_last_in_order(Sched& sched, P& p, M* m, GList&& batch, Level level);

// Moves everything that is queued on `p` to the GRQ.
void empty_queues(Sched& sched, P& p);

// -- For any thread.

// Queues runnable goroutines that belong to no P, and wakes an M for them.
void inject(Sched& sched, G* g, Level level);
void inject(Sched& sched, GList&& batch, Level level);

// Makes a goroutine runnable on this M after its park was withdrawn.
void unpark(M* m, G* g);

// Wakes an M if the work queued here is worth the cost of a wake-up (rule 6). Only for the holder of `p`.
void wake_if_it_pays(Sched& sched, const P& p);

}  // namespace tuza::rt
