#include <tuza/sched/rt/lifecycle/abandon.h>

#include <tuza/sched/detail/pending_wait.h>
#include <tuza/sched/rt/sched.h>

namespace tuza::rt {
namespace {

template <class Visit>
void each_pending_wait(Sched& sched, Visit&& visit) {
  for (std::size_t i = 0, n = sched.gs.count(); i < n; ++i) {
    G& g = sched.gs.at(i);
    // A running goroutine is on a thread that has not come back. Its stack stays mapped, so its waits may
    // stay too.
    const GStatus status = g.status.load(std::memory_order_acquire);
    if (status == GStatus::kDead || status == GStatus::kRunning) continue;
    for (PendingWait* pending = g.pending_wait; pending != nullptr; pending = pending->outer)
      visit(g, *pending);
  }
}

}  // namespace

bool withdraw_waits(Sched& sched) {
  each_pending_wait(sched,
                    [](G& g, const PendingWait& pending) { pending.withdrawal.claim(g, pending.wait); });
  bool forgotten = true;
  each_pending_wait(sched, [&forgotten](G&, const PendingWait& pending) {
    forgotten = pending.withdrawal.leave(pending.wait) && forgotten;
  });
  return forgotten;
}

void keep_allocations(Sched& sched) {
  if constexpr (!kAsan) return;
  for (std::size_t i = 0, n = sched.gs.count(); i < n; ++i) {
    const G& g = sched.gs.at(i);
    const GStatus status = g.status.load(std::memory_order_acquire);
    if (status == GStatus::kDead) continue;
    const auto record = reinterpret_cast<std::uintptr_t>(&g);
    allocations_stay(record, record + sizeof(G));
    // A goroutine that has not run yet may have a function object at the top of its stack.
    const auto sp = reinterpret_cast<std::uintptr_t>(g.context.sp != nullptr ? g.context.sp : g.closure);
    const bool suspended = status != GStatus::kRunning && sp >= g.stack.low && sp < g.stack.top;
    if (g.stack.exists()) allocations_stay(suspended ? sp : g.stack.low, g.stack.top);
  }
}

}  // namespace tuza::rt
