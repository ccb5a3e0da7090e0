// The scheduler's search for the next goroutine. The order of sources (docs/internals/scheduler.md, rule 3):
//
//   every 61st pick: housekeeping, then the GRQ, beginning at its last level or, alternately, at kNew
//   latecomers, during a backlog of goroutines that stall (except at every 8th pick)
//   runnext
//   woken goroutines: LRQ, GRQ; then new ones of the LRQ    every 8th pick: the new ones first
//   timers that are due, on any P
//   GRQ, a fair batch of its first non-empty level
//   I/O, without waiting
//   other Ps: half of a victim's LRQ
//   nothing found: give the P up, scan again, wait          -> rt/idle/idle.cpp
#include <tuza/sched/rt/queue/schedule.h>

#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/idle/idle.h>
#include <tuza/sched/rt/idle/machine_thread.h>
#include <tuza/sched/rt/idle/procs.h>
#include <tuza/sched/rt/locked_thread.h>
#include <tuza/sched/rt/queue/ready.h>
#include <tuza/sched/rt/report/deadlock.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/rt/switch.h>
#include <tuza/sched/rt/testing/chaos.h>

#include <algorithm>
#include <utility>

namespace tuza::rt {
namespace {

// Polls without waiting if the last poll is this old, so that I/O is noticed even if the queues never run
// empty.
constexpr std::int64_t kPollAgeNs = 200'000;
// A busy P runs the timers of other Ps that are this late.
constexpr std::int64_t kTimersLateNs = 1'000'000;

// Goroutines that wait in the GRQ are taken in batches above this number.
constexpr std::uint32_t kHerdQueued = 16;
// During a backlog of goroutines that stall, one pick in this many goes to the backlog, whatever the number
// of latecomers.
constexpr std::uint64_t kBacklogPicks = 8;

void begin_slice(Sched& sched, P& p) {
  p.runnext_streak = 0;
  ++p.tick;
  p.slice_start_ns.store(sched.coarse_ns.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

// runnext continues the slice of the goroutine that readied it. Two goroutines that ready each other could
// continue like that for ever. Once the slice is used up and others wait, runnext must queue (rule 1).
bool shared_slice_is_used_up(const Sched& sched, const P& p) {
  return p.runnext_streak >= kRunnextStreakMax ||
         sched.coarse_ns.load(std::memory_order_relaxed) - p.slice_start_ns.load(std::memory_order_relaxed) >=
             sched.slice.slice_ns;
}

G* take_global(M* m, GlobalQueues::First first) {
  Sched& sched = *m->sched;
  std::array<G*, kLocalQueueCapacity / 2> batch;
  // Take no more than the local queues have room for: surplus goroutines would go back, behind others.
  const std::uint32_t queued = std::max(m->p->woken.size(), m->p->queue.size());
  const std::span room =
      std::span(batch).first(std::min<std::size_t>(batch.size(), kLocalQueueCapacity - queued + 1));
  const auto [n, level] = sched.grq.pop_batch(static_cast<std::uint32_t>(sched.procs()), room, first);
  if (n == 0) return nullptr;
  if (level == Level::kLatecomer) m->p->latecomer_pick = m->p->picks.get();
  // These goroutines have waited long enough to have left the caches, and will be switched to in a moment.
  for (std::uint32_t i = 0; i < n; ++i) batch[i]->prefetch_context();
  for (std::uint32_t i = 1; i < n; ++i) put_last(sched, *m->p, m, batch[i], level);
  begin_slice(sched, *m->p);
  return batch[0];
}

// Takes goroutines that were woken from outside; they go before the new ones of this P. Takes one at a time,
// so that other Ps get some as well while goroutines may run long, but a share if many wait. The local queue
// of woken goroutines is empty. Not inlined: its frame is large, and pick_local() runs on goroutine stacks.
[[gnu::noinline]] G* take_woken(M* m) {
  Sched& sched = *m->sched;
  GlobalQueue& queue = sched.grq[Level::kWoken];
  std::array<G*, kLocalQueueCapacity / 2> batch;
  const std::span<G*> room = std::span(batch).first(queue.size() > kHerdQueued ? batch.size() : 1);
  const std::uint32_t n = queue.pop_batch(static_cast<std::uint32_t>(sched.procs()), room);
  if (n == 0) return nullptr;
  for (std::uint32_t i = 0; i < n; ++i) batch[i]->prefetch_context();
  for (std::uint32_t i = 1; i < n; ++i) put_last(sched, *m->p, m, batch[i], Level::kWoken);
  return batch[0];
}

G* take_latecomer(M* m) {
  Sched& sched = *m->sched;
  P& p = *m->p;
  if (const std::uint32_t number = sched.backlog.number(); p.backlog_seen != number) {
    p.backlog_seen = number;
    favour_proven(sched, p);
  }
  G* g = nullptr;
  if (p.picks.get() % kBacklogPicks == 0) {
    // This pick belongs to the backlog. runnext does not count, because pairs that ready each other keep it
    // filled. Every second such pick takes a goroutine that was not woken.
    if (G* next = p.runnext.exchange(nullptr, std::memory_order_acq_rel))
      sched.grq[Level::kLatecomer].push(next);
    if (p.picks.get() / kBacklogPicks % 2 == 0) g = RunQueue::Owner(p.queue).pop();
    if (g != nullptr) begin_slice(sched, p);
    return g;
  }
  if (sched.grq[Level::kLatecomer].pop_batch(1, std::span(&g, 1)) == 0) return nullptr;
  p.latecomer_pick = p.picks.get();
  begin_slice(sched, p);
  return g;
}

G* take_here(M* m) {
  if (m->sched->backlog.lasts()) {
    if (G* g = take_latecomer(m)) return g;
  }
  return take_queued(m);
}

// Learns how long goroutines run on this P: the mean over the picks since the last call, weighted half old,
// half new. A mean far above the old one is capped: the thread may have lost its core for milliseconds, just
// once.
void learn_run_time(P& p, std::int64_t now) {
  const std::uint64_t picks = p.picks.get() - p.learn_picks;
  if (p.learn_since_ns != 0 && picks > 0) {
    const std::int64_t old = p.average_run_ns.load(std::memory_order_relaxed);
    const std::int64_t mean =
        std::min((now - p.learn_since_ns) / static_cast<std::int64_t>(picks), 4 * old + 1'000);
    p.average_run_ns.store((old + mean) / 2, std::memory_order_relaxed);
  }
  p.learn_since_ns = now;
  p.learn_picks = p.picks.get();
}

// Polls without waiting; ready goroutines go to the tail of the queue.
void poll_now(M* m, std::int64_t now) {
  Sched& sched = *m->sched;
  GList ready;
  sched.poll.source()->poll(0, ready);
  sched.poll.polled(now);
  sched.io_waits_ended(m->p, ready.size());
  put_last_in_order(sched, *m->p, m, std::move(ready), Level::kWoken);
}

// Runs all timers that are due at `now`, on every P, if some timer should have fired by `at_least`.
bool run_due_timers(Sched& sched, std::int64_t now, std::int64_t at_least) {
  if (sched.next_timer_ns() > at_least) return false;
  std::size_t fired = 0;
  for (std::int32_t i = 0, n = sched.procs_made.load(std::memory_order_acquire); i < n; ++i) {
    fired += sched.p(i).timers.run_due(now);
  }
  return fired > 0;
}

G* housekeeping(M* m) {
  Sched& sched = *m->sched;
  const std::int64_t now = now_ns();
  sched.coarse_ns.store(now, std::memory_order_relaxed);
  learn_run_time(*m->p, now);
  m->p->timers.run_due(now);
  // Timers of other Ps are late when their holder stays in user code, or when the P is retired.
  run_due_timers(sched, now, now - kTimersLateNs);
  if (sched.poll.holder() == PollRole::Holder::kNobody && now - sched.poll.last_ns() >= kPollAgeNs &&
      sched.has_io_waiters()) {
    poll_now(m, now);
  }
  return take_global(m, m->p->picks.get() / kHousekeepingPicks % 2 == 0 ? GlobalQueues::First::kReturned
                                                                        : GlobalQueues::First::kNew);
}

// Whether other Ps are busy, so that polling now, and stealing, may find something. The only busy P neither
// polls nor steals: its M is about to block in the poller, which costs one system call instead of two.
bool others_are_busy(const Sched& sched) {
  return sched.idle_ps.count() < sched.procs() - 1 || sched.surplus_held.load(std::memory_order_relaxed) > 0;
}

// Goes through all sources once. Returns null if none has a goroutine.
G* check_all_sources(M* m) {
  Sched& sched = *m->sched;
  P& p = *m->p;
  const bool housekeeping_due = wants_housekeeping(p);
  ++p.picks;
  if (housekeeping_due) {
    if (G* g = housekeeping(m)) return g;
  }
  if (p.timers.next_ns() <= sched.coarse_ns.load(std::memory_order_relaxed)) p.timers.run_due(now_ns());
  if (G* g = take_here(m)) return g;
  if (sched.next_timer_ns() != TimerHeap::kNever) {
    const std::int64_t now = now_ns();
    if (run_due_timers(sched, now, now)) {
      if (G* g = take_here(m)) return g;
    }
  }
  if (G* g = take_global(m, GlobalQueues::First::kWoken)) return g;
  if (!others_are_busy(sched)) return nullptr;
  if (sched.poll.holder() == PollRole::Holder::kNobody && sched.has_io_waiters()) {
    poll_now(m, now_ns());
    if (G* g = take_here(m)) return g;
  }
  G* g = steal(m);
  if (g != nullptr) begin_slice(sched, p);
  return g;
}

}  // namespace

G* take_queued(M* m) {
  Sched& sched = *m->sched;
  P& p = *m->p;
  G* next = p.runnext.load(std::memory_order_relaxed);
  // A thief may take the goroutine meanwhile. acquire: to see the goroutine as the thread that put it there
  // left it.
  if (next != nullptr && p.runnext.compare_exchange_strong(next, nullptr, std::memory_order_acquire,
                                                           std::memory_order_relaxed)) {
    if (p.queues_empty() || !shared_slice_is_used_up(sched, p)) {
      ++p.runnext_streak;
      return next;
    }
    put_last(sched, p, m, next, Level::kNew);
  }
  G* g = nullptr;
  if (p.picks.get() % kNewFirstPicks == kNewFirstPicks - 1) g = RunQueue::Owner(p.queue).pop();
  if (g == nullptr) g = RunQueue::Owner(p.woken).pop();
  if (g == nullptr && sched.grq[Level::kWoken].size() > 0) g = take_woken(m);
  if (g == nullptr) g = RunQueue::Owner(p.queue).pop();
  if (g != nullptr) begin_slice(sched, p);
  return g;
}

G* pick_local(M* m) {
  if constexpr (chaos::kEnabled) return nullptr;
  Sched& sched = *m->sched;
  if (m->p == nullptr) return nullptr;  // the goroutine ran on without a P (rt/slice/handoff.h)
  P& p = *m->p;
  if (m->locked_g != nullptr || p.attention.load(std::memory_order_relaxed)) return nullptr;
  if (sched.backlog.lasts()) return nullptr;  // check_all_sources() handles latecomers
  if (wants_housekeeping(p)) return nullptr;
  if (p.timers.next_ns() <= sched.coarse_ns.load(std::memory_order_relaxed)) return nullptr;
  G* g = take_queued(m);
  if (g == nullptr) return nullptr;
  ++p.picks;
  if (g->locked_m != nullptr) {
    m->handed = g;
    return nullptr;
  }
  return g;
}

G* find_runnable(M* m) {
  Sched& sched = *m->sched;
  while (!sched.stopping.load(std::memory_order_acquire)) {
    if (G* g = std::exchange(m->handed, nullptr)) return g;
    if (m->p->attention.load(std::memory_order_relaxed) && retire_p_if_surplus(m)) {
      if (!wait_for_p(m)) return nullptr;
      continue;
    }
    if (G* g = check_all_sources(m)) return g;
    if (!go_idle(m)) return nullptr;
  }
  return nullptr;
}

void schedule_loop(M* m) {
  for (;;) {
    if (m->p == nullptr && m->locked_g == nullptr && !wait_for_p(m)) return;
    G* g = m->locked_g != nullptr ? wait_for_locked_g(m) : find_runnable(m);
    if (g == nullptr) return;
    // Not before: work that this M has come for would look as if nobody came.
    if (m->starting) [[unlikely]]
      starts_with_work(m);
    if (m->spinning) stop_spinning(m);
    if (g->locked_m != nullptr && g->locked_m != m) {
      hand_to_locked_m(m, g);
      continue;
    }
    if (chaos::migrates(m, g)) continue;
    if (!m->may_run_programs) [[unlikely]]
      allow_programs(m);
    switch_from_g0(m, g);
    if (m->p == nullptr) leave_lane(m);
    if (m->thread_is_spent) {
      // It may wake others, in destructors of its thread_locals: foreign before others can find its P idle.
      if (!m->has_forked) m_becomes_foreign(m);
      if (m->p != nullptr) hand_off_p(*m->sched, release_p(m));
      chaos::dawdle();
      report_deadlock_if_any(*m->sched);  // it may have been the last that could wake others
      while (m->has_forked && !m->sched->stopping.load(std::memory_order_acquire)) m->note.sleep();
      return;
    }
  }
}

}  // namespace tuza::rt
