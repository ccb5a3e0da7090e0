#include <tuza/sched/rt/slice/handoff.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/base/fork.h>
#include <tuza/sched/rt/base/heavy_fence.h>
#include <tuza/sched/rt/base/kernel_slice.h>
#include <tuza/sched/rt/base/thread_cpu.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/idle/idle.h>
#include <tuza/sched/rt/idle/procs.h>
#include <tuza/sched/rt/report/mutex_report.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/slice/before_park.h>
#include <tuza/sched/rt/switch.h>

namespace tuza::rt {
namespace {

// A goroutine that uses this much CPU without a P is a CPU hog.
constexpr std::int64_t kMuchCpuNs = 10'000'000;

// Call before kGone is set.
void note_gone(M& m, CpuClock clock, GoneFor why) TUZA_REQUIRES(m.handoff_mutex) {
  m.gone_cpu_ns = thread_cpu_ns(clock);
  m.gone_at_ns = m.sched->coarse_ns.load(std::memory_order_relaxed);
  m.gone_for = why;
}

// False: no fence is available now, so the attempt must be given up.
bool fence_against_enter(Sched& sched) {
  if (!sched.fence_on_enter) {
    const Fence fence = heavy_fence();
    if (fence == Fence::kRefused) demand_fence_on_enter(sched);
    return fence == Fence::kDone;
  }
  return sched.fence_demanded_ns == 0 || now_ns() - sched.fence_demanded_ns >= kFenceSettleNs;
}

}  // namespace

void demand_fence_on_enter(Sched& sched) {
  const LockGuard lock(sched.ms_mutex);  // new Ms have the bit from the start
  sched.fence_on_enter = true;
  for (std::uint32_t i = 0, n = sched.ms_made.load(std::memory_order_relaxed); i < n; ++i) {
    sched.ms[i].taken.fetch_or(taken::kFence, std::memory_order_seq_cst);
  }
  sched.fence_demanded_ns = now_ns();
}

bool take_p(P& p, M* m, std::uint64_t seen_picks, GoneFor why) {
  const LockGuard lock(m->handoff_mutex);
  m->taken.fetch_or(taken::kTaking, std::memory_order_seq_cst);
  // acquire: pairs with the release in ~Enter, so that whatever the M did with the P has happened. Reads
  // P::m, not M::p: the M may change M::p as soon as this attempt has failed.
  if (fence_against_enter(*m->sched) && m->in_rt.load(std::memory_order_acquire) == 0 &&
      p.m.load(std::memory_order_relaxed) == m && p.picks.get() == seen_picks) {
    release_p(m);
    note_gone(*m, m->cpu_clock, why);
    // Change the bits one at a time: other threads may change theirs. An M that sees kGone alone already
    // finds p null.
    m->taken.fetch_or(taken::kGone, std::memory_order_release);
    m->taken.fetch_and(~taken::kTaking, std::memory_order_release);
    return true;
  }
  m->taken.fetch_and(~taken::kTaking, std::memory_order_release);
  ask_to_yield(m, seen_picks);
  return false;
}

void ask_to_yield(M* m, std::uint64_t seen_picks) {
  // The request names this pick count and no later one: another goroutine may be running by now.
  m->yield_asked.store(yield_mark(seen_picks), std::memory_order_relaxed);
}

void ask_to_give(M* m, std::uint64_t seen_picks) {
  ask_to_yield(m, seen_picks);
  m->taken.fetch_or(taken::kGive, std::memory_order_release);
}

void hand_off_own_p(M* m) {
  P* p = nullptr;
  {
    const LockGuard lock(m->handoff_mutex);  // sysmon may be in take_p() right now
    p = release_p(m);
    note_gone(*m, kReadersCpuClock, GoneFor::kOther);
    m->taken.fetch_or(taken::kGone, std::memory_order_release);
  }
  m->sched->sysmon.lane().arrive(m);
  hand_off_p(*m->sched, p);
}

void leave_lane(M* m) {
  if ((m->taken.load(std::memory_order_acquire) & taken::kGone) == 0) return;
  if (m->gone_for == GoneFor::kEarly) {
    m->sched->sysmon.slices().came_back(*m->sched, now_ns() - m->gone_at_ns,
                                        thread_cpu_ns(kReadersCpuClock) - m->gone_cpu_ns);
  }
  m->taken.fetch_and(~taken::kGone, std::memory_order_seq_cst);  // against hand_off_p()
  if (m->long_kernel_slice.exchange(false, std::memory_order_acq_rel))
    hint_kernel_slice(0, kWorkerKernelSliceNs);
}

namespace {

// A goroutine that waited in the kernel, or computed a little longer than an early handoff allows, is as
// urgent as a woken one: it may have an answer ready. (Example: requests that take 1 ms, at half the rate
// that the cores can serve. On the last level each would wait until no other goroutine is queued, which may
// take 400 ms.) It gets this priority only once per wait: goroutines that never wait would stay ahead of the
// woken ones for ever.
Level level_on_return(const M& m, G& g) {
  if ((m.taken.load(std::memory_order_acquire) & taken::kGone) == 0) return Level::kReturned;
  if (m.gone_for == GoneFor::kSlice || g.returned_since_ns == g.wait_since_ns.get()) return Level::kReturned;
  if (thread_cpu_ns(kReadersCpuClock) - m.gone_cpu_ns >= kMuchCpuNs) return Level::kReturned;
  g.returned_since_ns = g.wait_since_ns.get();
  return m.sched->backlog.level_of_woken();
}

// Something is queued, or the scheduler would find work: a timer, or I/O that nobody polls.
bool others_may_wait(const Sched& sched, const P& p) {
  return p.queued() > 0 || sched.grq.size() > 0 ||
         sched.next_timer_ns() <= sched.coarse_ns.load(std::memory_order_relaxed) ||
         (sched.poll.holder() == PollRole::Holder::kNobody && sched.has_io_waiters());
}

}  // namespace

bool commit_return(G* g, void*) {
  const M& m = *current_m();
  Sched& sched = *m.sched;
  const bool locked = g->locked_m != nullptr;
  sched.grq[level_on_return(m, *g)].push(g);
  if (locked) wake_one(sched);
  return true;
}

void parking_point_slow() {
  run_before_park();
  const Enter rt;
  M* m = rt.m();
  G* g = rt.g();
  if (g == &m->g0 || g->rt_depth != 1) return;  // not a call from user code
  check_no_mutex_held(*g);
  Sched& sched = *m->sched;
  const Leave to_the_end{GStatus::kRunnable, &commit_return, nullptr};
  if (m->p == nullptr) {
    if (!acquire_p(m)) switch_to(m, &m->g0, to_the_end);
    return;
  }
  const std::uint32_t asked = m->yield_asked.load(std::memory_order_relaxed);
  if (asked == 0) return;
  m->yield_asked.store(0, std::memory_order_relaxed);
  if (asked != yield_mark(m->p->picks.get())) return;  // the request was for another goroutine
  if (!others_may_wait(sched, *m->p) && !sched.stopping.load(std::memory_order_relaxed)) {
    ++m->p->picks;  // nobody waits: start a new slice
    return;
  }
  switch_to_next(m, to_the_end);
}

}  // namespace tuza::rt
