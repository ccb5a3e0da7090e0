#include <tuza/sched/detail/spin.h>

#include <tuza/sched/arch/cpu_relax.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/p.h>
#include <tuza/sched/rt/sched.h>

namespace tuza::rt {

bool worth_spinning(int round) {
  if (round >= kSpinRounds) return false;
  const Enter rt;
  const M* m = rt.m();
  if (m == nullptr) return true;
  const P* p = rt.p();
  if (p == nullptr || p->queued() != 0) return false;
  const Sched& sched = *m->sched;
  const int busy = sched.procs() - sched.idle_ps.count() -
                   static_cast<int>(sched.spinning.load(std::memory_order_relaxed));
  return busy > 1;  // our own P included
}

void spin_a_round() {
  constexpr int kPauses = 30;
  for (int i = 0; i < kPauses; ++i) cpu_relax();
}

}  // namespace tuza::rt
