#include <tuza/netpoll/poll/wait_slot.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/futex.h>
#include <tuza/sched/rt/g.h>
#include <tuza/sched/rt/park.h>
#include <tuza/sched/rt/queue/io_source.h>

namespace tuza::net {

bool WaitSlot::announce() {
  for (;;) {
    if (consume()) return false;
    std::uintptr_t nil = kNil;
    // seq_cst: pairs with wake(false), see wait_slot.h.
    if (state_.compare_exchange_strong(nil, kWaiting, std::memory_order_seq_cst)) return true;
    if (nil != kReady) rt::fatal("two goroutines wait for one direction of a descriptor");
  }
}

bool WaitSlot::commit(rt::G* g, void* self) {
  auto& slot = *static_cast<WaitSlot*>(self);
  std::uintptr_t waiting = kWaiting;
  // release: the thread that takes the goroutine out of the slot sees it parked.
  return slot.state_.compare_exchange_strong(waiting, reinterpret_cast<std::uintptr_t>(g),
                                             std::memory_order_acq_rel);
}

bool WaitSlot::commit_to_poller(rt::G* g, void* self) {
  rt::io_wait_begins();
  if (commit(g, self)) return true;
  rt::io_wait_ends();
  return false;
}

void WaitSlot::park(WaitReason reason, rt::PendingWait* pending, Source source) {
  rt::park(source == Source::kPoller ? &WaitSlot::commit_to_poller : &WaitSlot::commit, this, reason,
           pending);
}

void WaitSlot::withdraw(rt::G& g) {
  constexpr std::int64_t kNapNs = 50'000;
  if (wake(false) == &g) return;
  while (rt::waits(g.status.load(std::memory_order_acquire))) {
    std::atomic<std::uint32_t> nobody_wakes{0};
    rt::futex_wait(nobody_wakes, 0, kNapNs);
  }
}

bool WaitSlot::retract() {
  const std::uintptr_t before = state_.exchange(kNil, std::memory_order_acq_rel);
  if (before > kWaiting) rt::fatal("a goroutine left its wait slot while it was parked there");
  return before == kReady;
}

rt::G* WaitSlot::wake(bool ready) {
  // A reason may be written with less than seq_cst (the end of a context). The fetch_or writes, so it is
  // ordered with the announcement: either the announcement is seen here, or the waiter sees the reason.
  std::uintptr_t before =
      ready ? state_.load(std::memory_order_seq_cst) : state_.fetch_or(0, std::memory_order_seq_cst);
  for (;;) {
    if (before == kReady || (before == kNil && !ready)) return nullptr;
    const std::uintptr_t after = ready ? kReady : kNil;
    if (state_.compare_exchange_weak(before, after, std::memory_order_acq_rel)) {
      return before > kWaiting ? reinterpret_cast<rt::G*>(before) : nullptr;
    }
  }
}

}  // namespace tuza::net
