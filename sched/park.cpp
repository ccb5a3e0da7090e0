#include <tuza/sched/park.h>

#include <tuza/sched/goroutine.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/queue/ready.h>
#include <tuza/sched/rt/queue/schedule.h>
#include <tuza/sched/rt/report/mutex_report.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/rt/switch.h>
#include <tuza/sched/sync/pending_wait.h>

namespace tuza {
namespace rt {
namespace {

M* require_goroutine(const Enter& rt) {
  M* m = rt.m();
  if (m == nullptr) fatal("a parking call on a thread that is not a goroutine");
  if (m->current == &m->g0) fatal("a parking call inside the scheduler");
  check_no_mutex_held(*m->current);
  return m;
}

// The goroutine that yields goes behind those that wait. With nobody in the local queue these are in
// the GRQ, and it must line up there: from the local queue it would be picked again before any of them.
bool commit_yield(G* g, void*) {
  M* m = current_m();
  Sched& sched = *m->sched;
  if (m->p == nullptr) {
    commit_return(g, nullptr);
  } else if (m->p->queues_empty() && sched.grq.size() > 0) {
    sched.grq[Level::kNew].push(g);
  } else {
    put_last(sched, *m->p, m, g, Level::kNew);
  }
  return true;
}

}  // namespace

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

G* current_g() {
  const Enter rt;
  M* m = rt.m();
  return m == nullptr || m->current == &m->g0 ? nullptr : m->current.get();
}

}  // namespace rt

void yield() {
  using namespace rt;
  parking_point();  // it may have lost its P: queues for one
  const Enter rt;
  M* m = require_goroutine(rt);
  if (m->p == nullptr) return switch_to_next(m, Leave{GStatus::kRunnable, &commit_yield, nullptr});
  P& p = *m->p;
  const bool alone = p.queued() == 0 && m->sched->grq.size() == 0;
  // Alone it goes on at once, but the P's housekeeping (timers, poll) still gets its turn.
  if (alone && !wants_housekeeping(p) && !p.attention.load(std::memory_order_relaxed)) {
    ++p.picks;
    return;
  }
  switch_to_next(m, Leave{GStatus::kRunnable, &commit_yield, nullptr});
}

}  // namespace tuza
