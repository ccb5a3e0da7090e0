// Work stealing: an M whose P has nothing to run takes goroutines from other Ps.
//
// The thief visits the Ps in the order of rt/queue/steal_order.h, and takes half of a victim's LRQ. runnext is taken
// in the last round only, and only if it is still there after a pause of some microseconds: the owner usually
// switches to that goroutine at once, and moving it to another core costs both Ps.
//
// A thief counts as spinning. At most half as many Ms spin as Ps are busy, so that a system with little to do
// does not burn its cores searching for work.
#include <tuza/sched/arch/cpu_relax.h>
#include <tuza/sched/rt/queue/schedule.h>
#include <tuza/sched/rt/queue/steal_order.h>
#include <tuza/sched/rt/sched.h>

#include <algorithm>
#include <optional>

namespace tuza::rt {
namespace {

constexpr int kRunnextPauseSpins = 100;  // about 3 us

G* take_stale_runnext(P& victim) {
  G* g = victim.runnext.load(std::memory_order_relaxed);
  if (g == nullptr) return nullptr;
  for (int i = 0; i < kRunnextPauseSpins; ++i) cpu_relax();
  // If runnext has changed, the owner is switching to that goroutine. If it holds the same goroutine again
  // (ABA), the goroutine is as good to take. acquire pairs with the release in put_next.
  return victim.runnext.compare_exchange_strong(g, nullptr, std::memory_order_acq_rel) ? g : nullptr;
}

}  // namespace

bool try_spinning(M* m) {
  if (m->spinning) return true;
  Sched& sched = *m->sched;
  const auto busy = static_cast<std::uint32_t>(std::max(sched.procs() - sched.idle_ps.count(), 1));
  std::uint32_t spinning = sched.spinning.load(std::memory_order_relaxed);
  do {
    if (2 * spinning >= busy) return false;
  } while (!sched.spinning.compare_exchange_weak(spinning, spinning + 1, std::memory_order_seq_cst));
  m->spinning = true;
  return true;
}

G* steal(M* m) {
  if (!try_spinning(m)) return nullptr;
  Sched& sched = *m->sched;
  const auto ps = static_cast<std::uint32_t>(sched.procs_made.load(std::memory_order_acquire));
  StealOrder order(m->random, ps);
  while (const std::optional<StealOrder::Visit> visit = order.next()) {
    P& victim = sched.p(static_cast<std::int32_t>(visit->p));
    if (&victim == m->p) continue;
    for (const Level level : {Level::kWoken, Level::kNew}) {
      const RunQueue::Owner mine(m->p->local(level));
      if (G* g = RunQueue::Thief(victim.local(level)).steal_half(mine)) return g;
    }
    if (!visit->last_round) continue;
    if (G* g = take_stale_runnext(victim)) return g;
  }
  return nullptr;
}

}  // namespace tuza::rt
