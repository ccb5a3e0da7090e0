#include <tuza/sched/rt/enter.h>

#include <tuza/sched/rt/base/fork.h>
#include <tuza/sched/rt/base/futex.h>
#include <tuza/sched/rt/slice/handoff.h>

namespace tuza::rt {

void enter_slow(M* m) {
  // A read-modify-write, for processes without a heavy fence: it is ordered before or after the one in take_p().
  // Either take_p() sees in_rt, which was stored before, or this thread sees kTaking.
  const std::uint32_t seen = m->taken.fetch_or(0, std::memory_order_acq_rel);
  if ((seen & taken::kForked) != 0) refuse_in_forked_child();
  if ((seen & taken::kEnded) != 0) {
    std::atomic<std::uint32_t> never{0};
    for (;;) futex_wait(never, 0);
  }
  if ((seen & taken::kTaking) != 0) {
    const LockGuard decided(m->handoff_mutex);
  }
  if ((seen & taken::kGive) != 0) {
    m->taken.fetch_and(~taken::kGive, std::memory_order_relaxed);
    // Give the P away only if this is still the slice of the goroutine that sysmon asked.
    const std::uint32_t asked = m->yield_asked.load(std::memory_order_relaxed);
    if (m->p != nullptr && asked == yield_mark(m->p->picks.get())) hand_off_own_p(m);
  }
}

}  // namespace tuza::rt
