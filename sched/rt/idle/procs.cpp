#include <tuza/sched/rt/idle/procs.h>

#include <tuza/sched/goroutine.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/idle/idle.h>
#include <tuza/sched/rt/queue/ready.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/slice/handoff.h>

#include <algorithm>
#include <new>
#include <utility>

namespace tuza {
namespace rt {
namespace {

// Moves everything that a P holds to shared places. Its timers stay: every M checks the timers of all Ps that
// were ever made. The caller has taken the P out of idle_ps, or held it.
void retire(Sched& sched, P& p) TUZA_REQUIRES(sched.procs_mutex) {
  p.retired.store(true, std::memory_order_relaxed);
  empty_queues(sched, p);
  sched.gs.flush(p);
  PerPCache::flush(p);
  if (sched.grq.size() > 0) wake_one(sched);
}

// Call after every change. The Ms with surplus Ps are busy, which the number of
// non-idle Ps does not show.
void count_surplus(Sched& sched) TUZA_REQUIRES(sched.procs_mutex) {
  std::int32_t held = 0;
  for (std::int32_t id = sched.procs(), n = sched.procs_made.load(); id < n; ++id) {
    held += sched.p(id).retired.load(std::memory_order_relaxed) ? 0 : 1;
  }
  sched.surplus_held.store(held, std::memory_order_seq_cst);
  if (held > 0) sched.sysmon.p_busy();  // sysmon may have gone to sleep, because it saw no busy P
}

}  // namespace

bool acquire_p(M* m) {
  Sched& sched = *m->sched;
  const int id = sched.idle_ps.take_any(m->last_p_id, sched.procs());
  if (id < 0) return false;
  sched.sysmon.p_busy();
  hold_p(m, &sched.p(id));
  if (m->starting) chaos::dawdle();
  return true;
}

void hold_p(M* m, P* p) {
  m->p = p;
  p->m.store(m, std::memory_order_release);  // sysmon reads this M, and may never have seen it before
  m->fresh = false;
  leave_lane(m);
  // The goroutines of this P begin a new slice, and its idle time says nothing about how long they run.
  p->runnext_streak = 0;
  p->slice_start_ns.store(m->sched->coarse_ns.load(std::memory_order_relaxed), std::memory_order_relaxed);
  p->learn_since_ns = 0;
}

P* release_p(M* m) {
  P* p = std::exchange(m->p, nullptr);
  m->last_p_id = p->id;
  p->m.store(nullptr, std::memory_order_relaxed);
  return p;
}

void put_idle(Sched& sched, P* p) {
  sched.idle_ps.put(p->id);
  // seq_cst, against set_procs(): either set_procs() finds the P idle, or this thread sees that the P is
  // surplus.
  if (p->id >= sched.max_procs.load(std::memory_order_seq_cst)) [[unlikely]]
    retire_idle_p(sched, *p);
}

void set_procs(Sched& sched, std::int32_t n) {
  const LockGuard lock(sched.procs_mutex);
  const std::int32_t before = sched.procs();
  for (std::int32_t id = sched.procs_made.load(std::memory_order_relaxed); id < n; ++id) {
    P* p = ::new (static_cast<void*>(&sched.ps[id])) P;
    p->id = id;
    p->retired.store(true, std::memory_order_relaxed);
    sched.procs_made.store(id + 1, std::memory_order_release);
  }
  sched.max_procs.store(n, std::memory_order_seq_cst);
  for (std::int32_t id = n; id < before; ++id) {
    // seq_cst, against put_idle(): either the P's M sees the new maximum, or this thread finds the P idle.
    sched.p(id).attention.store(true, std::memory_order_seq_cst);
    if (sched.idle_ps.take(id)) retire(sched, sched.p(id));
  }
  for (std::int32_t id = before; id < n; ++id) {
    // A P that was about to retire but is still held stays with its M.
    P& p = sched.p(id);
    if (!p.retired.load(std::memory_order_relaxed)) continue;
    p.retired.store(false, std::memory_order_relaxed);
    p.attention.store(sched.stopping.load(), std::memory_order_relaxed);
    sched.idle_ps.put(id);
  }
  count_surplus(sched);
  if (sched.grq.size() > 0) wake_one(sched);
}

void follow_cpu_limit(Sched& sched) {
  const std::int32_t cpus = sched.cpu_limit.cpus();
  if (cpus != sched.procs()) set_procs(sched, cpus);
}

bool retire_p_if_surplus(M* m) {
  Sched& sched = *m->sched;
  const LockGuard lock(sched.procs_mutex);
  if (m->p->id < sched.procs()) {
    m->p->attention.store(sched.stopping.load(), std::memory_order_relaxed);
    return false;
  }
  P* p = release_p(m);
  if (m->spinning) {
    m->spinning = false;
    sched.spinning.fetch_sub(1, std::memory_order_seq_cst);
  }
  retire(sched, *p);
  count_surplus(sched);
  return true;
}

void retire_idle_p(Sched& sched, P& p) {
  const LockGuard lock(sched.procs_mutex);
  if (p.id < sched.procs() || !sched.idle_ps.take(p.id)) return;
  retire(sched, p);
  count_surplus(sched);
}

}  // namespace rt

int max_procs() {
  const rt::ExternalEntry entry;
  return entry.sched() == nullptr ? 0 : entry.sched()->procs();
}

int set_max_procs(int n) {
  const rt::Enter rt;  // the call takes locks of the runtime
  const rt::ExternalEntry entry;
  rt::Sched* sched = entry.sched();
  if (sched == nullptr) rt::fatal("set_max_procs() outside tuza::run");
  const int before = sched->procs();
  if (n <= 0) return before;
  sched->procs_fixed.store(true, std::memory_order_relaxed);
  rt::set_procs(*sched, std::min(n, rt::kMaxProcsLimit));
  return before;
}

}  // namespace tuza
