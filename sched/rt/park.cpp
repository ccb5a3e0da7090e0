#include <tuza/sched/rt/park.h>

#include <tuza/sched/detail/pending_wait.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/queue/ready.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/switch.h>

namespace tuza::rt {

void park(ParkCommit commit, void* argument, WaitReason reason, PendingWait* pending) {
  const Enter rt;
  M* m = require_goroutine(rt);
  G* g = m->current;
  g->wait_reason = reason;
  ++g->waits_begun;
  g->wait_since_ns = m->sched->coarse_ns.load(std::memory_order_relaxed);
  const PendingWaitScope on_record(g->pending_wait, pending);
  switch_to_next(m, Leave{GStatus::kWaiting, commit, argument});
}

void ready(G* g) {
  const Enter rt;
  if (M* m = rt.m(); m != nullptr && m->p != nullptr) {
    g->win();
    put_next(*m->sched, *m->p, m, g);
    wake_if_it_pays(*m->sched, *m->p);
    return;
  }
  const ExternalEntry entry;
  if (entry.sched() == nullptr) return;  // the runtime has ended, and the goroutine with it
  g->win();
  inject(*entry.sched(), g, Level::kWoken);
}

void ready(GList&& batch) {
  const Enter rt;
  if (batch.empty()) return;
  if (M* m = rt.m(); m != nullptr && m->p != nullptr) {
    put_last_in_order(*m->sched, *m->p, m, std::move(batch), Level::kWoken);
    wake_if_it_pays(*m->sched, *m->p);
    return;
  }
  const ExternalEntry entry;
  if (entry.sched() != nullptr) inject(*entry.sched(), std::move(batch), Level::kWoken);
}

G* current_g() {
  const Enter rt;
  M* m = rt.m();
  return m == nullptr || m->current == &m->g0 ? nullptr : m->current.get();
}

}  // namespace tuza::rt
