// Moves the current goroutine to another thread, for tests of what must survive a migration.
#pragma once

#include <tuza/sched/arch/cpu_relax.h>
#include <tuza/sched/arch/current_m.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/rt/idle/idle.h>
#include <tuza/sched/rt/park.h>
#include <tuza/sched/rt/queue/ready.h>
#include <tuza/sched/rt/sched.h>

namespace tuza::testing {

// Parks, and returns on another M. Needs a runtime with at least two Ps, one of them idle.
inline void migrate() {
  const rt::M* before = rt::current_m();
  do {
    rt::park(
        [](rt::G* g, void* home) {
          g->win();
          rt::inject(*rt::active(), g, rt::Level::kWoken);
          // This M stays busy here until another M has taken the goroutine, but not for ever: the M that was
          // woken may have found other work.
          for (int i = 0; i < 100'000 && g->last_m == home; ++i) rt::cpu_relax();
          return true;
        },
        const_cast<rt::M*>(before), WaitReason::kTest);
  } while (rt::current_m() == before);
}

}  // namespace tuza::testing
