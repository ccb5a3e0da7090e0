#include <tuza/sched/goroutine.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/queue/ready.h>
#include <tuza/sched/rt/queue/schedule.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/rt/switch.h>

#include <algorithm>

namespace tuza {
namespace rt {
namespace {

// The yielding goroutine queues behind those that wait. If the local queue is empty, the waiting goroutines
// are in the GRQ, and the yielding one must queue there: from the local queue it would be picked again
// before any of them.
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
}  // namespace rt

void yield() {
  using namespace rt;
  parking_point();  // the goroutine may have lost its P; if so, it queues for one
  const Enter rt;
  M* m = require_goroutine(rt);
  if (m->p == nullptr) return switch_to_next(m, Leave{GStatus::kRunnable, &commit_yield, nullptr});
  P& p = *m->p;
  const bool alone = p.queued() == 0 && m->sched->grq.size() == 0;
  // A goroutine without competition continues at once, unless the P's housekeeping (timers, poll) is due.
  if (alone && !wants_housekeeping(p) && !p.attention.load(std::memory_order_relaxed)) {
    ++p.picks;
    return;
  }
  switch_to_next(m, Leave{GStatus::kRunnable, &commit_yield, nullptr});
}

std::size_t num_goroutine() {
  const rt::ExternalEntry entry;
  const rt::Sched* sched = entry.sched();
  if (sched == nullptr) return 0;
  // Count exits first: a goroutine that ends during the count is then counted once too often, so the result
  // never becomes negative.
  std::uint64_t exited = sched->exited_outside.load(std::memory_order_relaxed);
  const std::int32_t ps = sched->procs_made.load(std::memory_order_acquire);
  for (std::int32_t i = 0; i < ps; ++i) exited += sched->p(i).exited.get();
  std::uint64_t spawned = sched->spawned_outside.load(std::memory_order_relaxed);
  for (std::int32_t i = 0; i < ps; ++i) spawned += sched->p(i).spawned.get();
  return static_cast<std::size_t>(spawned > exited ? spawned - exited : 0);
}

std::uint64_t goroutine_id() {
  const rt::Enter rt;
  return rt.g() == nullptr ? 0 : rt.g()->id.get();
}

void set_goroutine_name(std::string_view name) {
  const rt::Enter rt;
  if (rt.g() != nullptr) rt.g()->set_name(name);
}

std::string_view goroutine_name() {
  const rt::Enter rt;
  return rt.g() == nullptr ? std::string_view{} : rt.g()->name();
}

int set_max_threads(int n) {
  const rt::ExternalEntry entry;
  rt::Sched* sched = entry.sched();
  if (sched == nullptr) rt::fatal("set_max_threads() outside tuza::run");
  if (n <= 0) return static_cast<int>(sched->max_threads.load());
  const std::uint32_t limit = std::min(static_cast<std::uint32_t>(n), rt::Sched::kMaxMs);
  return static_cast<int>(sched->max_threads.exchange(limit));
}

}  // namespace tuza
