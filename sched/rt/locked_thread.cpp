#include <tuza/sched/rt/locked_thread.h>

#include <tuza/sched/goroutine.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/idle/idle.h>
#include <tuza/sched/rt/idle/procs.h>
#include <tuza/sched/rt/report/deadlock.h>
#include <tuza/sched/rt/sched.h>

#include <utility>

namespace tuza {
namespace rt {

G* wait_for_locked_g(M* m) {
  Sched& sched = *m->sched;
  if (m->spinning) stop_spinning(m);
  if (m->p != nullptr) hand_off_p(sched, release_p(m));
  report_deadlock_if_any(sched);
  while (!sched.stopping.load(std::memory_order_acquire)) {
    m->note.sleep();
    // While the runtime ends, a waker may be writing next_p right now: see sleep_idle() in idle.cpp.
    if (sched.stopping.load(std::memory_order_acquire)) break;
    if (P* p = std::exchange(m->next_p, nullptr); p != nullptr) {
      hold_p(m, p);
      return m->locked_g;
    }
  }
  return nullptr;
}

void hand_to_locked_m(M* m, G* g) { wake_with_p(g->locked_m, release_p(m), false); }

}  // namespace rt

void lock_os_thread() {
  const rt::Enter rt;
  if (rt.m() == nullptr) rt::fatal("lock_os_thread() outside a goroutine");
  rt::G* g = rt.g();
  if (g->lock_depth++ > 0) return;
  g->locked_m = rt.m();
  rt.m()->locked_g = g;
}

void unlock_os_thread() {
  const rt::Enter rt;
  if (rt.m() == nullptr) rt::fatal("unlock_os_thread() outside a goroutine");
  rt::G* g = rt.g();
  if (g->lock_depth == 0) rt::fatal("unlock_os_thread() without lock_os_thread()");
  if (--g->lock_depth > 0) return;
  g->locked_m = nullptr;
  rt.m()->locked_g = nullptr;
}

}  // namespace tuza
