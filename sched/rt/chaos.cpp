#include <tuza/sched/rt/chaos.h>

#if defined(TUZA_CHAOS)

#include <tuza/sched/rt/idle.h>
#include <tuza/sched/rt/sched.h>

namespace tuza::rt::chaos {

bool diverts_to_grq(Sched& sched, M* m, G* g) {
  switch (m->random.below(4)) {
    case 0: sched.grq.push(g); return true;
    case 1: sched.grq.push_front(g); return true;
    default: return false;
  }
}

bool migrates(M* m, G* g) {
  if (g->last_m != m || g->locked_m != nullptr) return false;
  M* other = m->sched->idle_ms.pop();
  if (other == nullptr) return false;
  other->handed = g;
  wake_with_p(other, release_p(m), false);
  return true;
}

}  // namespace tuza::rt::chaos

#endif
