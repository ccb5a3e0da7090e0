#include <tuza/sched/rt/switch.h>

#include <tuza/sched/arch/current_m.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/goroutine_main.h>
#include <tuza/sched/rt/queue/ready.h>
#include <tuza/sched/rt/queue/schedule.h>
#include <tuza/sched/rt/report/mutex_report.h>
#include <tuza/sched/rt/sched.h>

namespace tuza::rt {
namespace {

// All of a switch except the stack pointer. In this and in the functions that call it, AddressSanitizer must not move
// variables to its fake stack: that of a goroutine that ends is gone when depart() returns.
[[gnu::no_sanitize_address]] inline void depart(M* m, G* from, G* to, bool for_ever) {
  from->exceptions = *m->exceptions;
  *m->exceptions = to->exceptions;
  m->current = to;
  sanitizer_before_switch(from->sanitizer, to->sanitizer, for_ever);
}

// Called on the new stack, by the M that runs it now.
inline void arrive() {
  M* m = current_m();
  sanitizer_after_switch(m->current->sanitizer);
  const PendingCommit left = m->pending;
  if (left.g == nullptr) return;
  m->pending.g = nullptr;
  left.g->transition(GStatus::kRunning, left.becomes);
  if (!left.function(left.g, left.argument)) unpark(m, left.g);
}

inline void claim(M* m, G* g) {
  g->transition(GStatus::kRunnable, GStatus::kRunning);
  g->last_m = m;
  if (g->context.sp == nullptr) give_first_context(*m->sched, *m->p, *g);
}

}  // namespace

M* require_goroutine(const Enter& rt) {
  M* m = rt.m();
  if (m == nullptr) fatal("a parking call on a thread that is not a goroutine");
  if (m->current == &m->g0) fatal("a parking call inside the scheduler");
  check_no_mutex_held(*m->current);
  return m;
}

[[gnu::no_sanitize_address]] void switch_to(M* m, G* to, const Leave& leave) {
  G* from = m->current;
  m->pending = PendingCommit{from, leave.becomes, leave.commit, leave.argument};
  if (to != &m->g0) claim(m, to);
  depart(m, from, to, leave.becomes == GStatus::kDead);
  context_switch(&from->context, to->context);
  arrive();
}

[[gnu::no_sanitize_address]] void switch_from_g0(M* m, G* to) {
  claim(m, to);
  depart(m, &m->g0, to, false);
  context_switch(&m->g0.context, to->context);
  arrive();
}

void switch_to_next(M* m, const Leave& leave) {
  G* next = pick_local(m);
  switch_to(m, next != nullptr ? next : &m->g0, leave);
}

void complete_first_switch() { arrive(); }

}  // namespace tuza::rt
