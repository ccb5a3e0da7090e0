#include <tuza/sched/rt/goroutine_main.h>

#include <cxxabi.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/park.h>
#include <tuza/sched/rt/report/mutex_report.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/switch.h>
#include <tuza/sched/sync/detail/destroy_locals.h>
#include <unwind.h>

#include <new>

namespace tuza {
namespace rt {
namespace {

bool commit_end(G* g, void*) {
  M* m = current_m();
  g->sanitizer.goroutine_ended();
  m->sched->gs.put(m->p, g);
  return true;
}

// tuza_context_entry calls it on the goroutine's own stack. Without a catch or noexcept an exception finds no
// handler up to the end of the stack, so std::terminate is called where the exception was thrown.
void goroutine_main(void* argument) {
  auto& g = *static_cast<G*>(argument);
  complete_first_switch();
  g.rt_depth = 0;
  leave_runtime(current_m());  // like ~Enter
  g.entry(g.closure);
  if (g.locals != nullptr) [[unlikely]]
    destroy_locals();
  end_goroutine();
}

}  // namespace

void prepare_goroutine(G& g, void (*entry)(void* closure)) {
  g.entry = entry;
  g.exiting = false;
  g.before_park = nullptr;
  g.rt_depth = 1;
  g.exceptions = ExceptionState{};
  g.context = Context{};
  g.transition(GStatus::kDead, GStatus::kRunnable);
}

void give_first_context(Sched& sched, P& p, G& g) {
  if (!g.stack.exists() && !sched.gs.give_stack(p, g)) {
    fatal("no memory for the stack of another goroutine");
  }
  const bool closure_on_stack = g.closure != g.inline_closure;
  const std::uintptr_t top = closure_on_stack ? reinterpret_cast<std::uintptr_t>(g.closure) : g.stack.top;
  g.sanitizer.goroutine_starts(reinterpret_cast<void*>(g.stack.low), g.stack.top - g.stack.low);
  g.context = make_context(top, &goroutine_main, &g);
}

void end_goroutine() {
  const Enter rt;  // never destroyed: the next user of this stack begins inside the runtime
  M* m = current_m();
  G* g = m->current;
  check_no_mutex_left(*g);
  if (P* p = m->p; p != nullptr) {
    ++p->exited;
  } else {
    m->sched->exited_outside.fetch_add(1, std::memory_order_relaxed);
  }
  g->waits_begun = 0;
  if (g->locked_m != nullptr) {
    // What the goroutine changed of its thread (priority, namespaces) must not affect another goroutine.
    m->thread_is_spent = true;
    m->locked_g = nullptr;
    g->locked_m = nullptr;
    g->lock_depth = 0;
    switch_to(m, &m->g0, Leave{GStatus::kDead, &commit_end, nullptr});
  } else {
    switch_to_next(m, Leave{GStatus::kDead, &commit_end, nullptr});
  }
  fatal("a goroutine came back from its end");
}

namespace {

// Not instrumented, like goexit(): the frame is abandoned, and what ASan has poisoned in it would stay poisoned.
[[gnu::no_sanitize_address]] _Unwind_Reason_Code goexit_step(int, _Unwind_Action actions,
                                                             _Unwind_Exception_Class, _Unwind_Exception*,
                                                             _Unwind_Context*, void*) {
  if ((actions & _UA_END_OF_STACK) != 0) {
    destroy_locals();
    end_goroutine();
  }
  return _URC_NO_REASON;
}

// A catch (...) that does not rethrow has stopped the unwinding. The goroutine would continue as if goexit() had
// returned, which it never does.
void goexit_was_caught(_Unwind_Reason_Code, _Unwind_Exception*) {
  fatal("goexit() was caught by a catch (...) that does not rethrow");
}

}  // namespace

bool in_goexit() {
  const G* g = current_g();
  return g != nullptr && g->exiting;
}

}  // namespace rt

[[gnu::no_sanitize_address]] void goexit() {
  rt::G* g = rt::current_g();
  if (g == nullptr) rt::fatal("goexit() outside a goroutine");
  // A forced unwind, as in pthread_exit: it runs destructors, and passes catch (...) only if that rethrows. Its
  // record must outlive all unwound frames, this one included, so the record is at the low end of the stack.
  void* record = reinterpret_cast<void*>(g->stack.low);
  auto* unwind = ::new (record) _Unwind_Exception{};
  unwind->exception_cleanup = &rt::goexit_was_caught;
  g->exiting = true;
  rt::sanitizer_before_unwinding();
  _Unwind_ForcedUnwind(unwind, &rt::goexit_step, nullptr);
  rt::fatal("goexit() found no end of the stack");
}

}  // namespace tuza
