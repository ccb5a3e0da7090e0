#include <tuza/sched/rt/slice/before_park.h>

#include <tuza/sched/rt/m.h>
#include <tuza/sched/rt/slice/handoff.h>

#include <utility>

namespace tuza::rt {

// If the goroutine reaches another M without parking, the mark stays behind, which costs one look there, and the action
// runs later or not at all.
void set_before_park(void (*act)(void* arg), void* arg) {
  M* const m = current_m();
  m->current->before_park = act;
  m->current->before_park_arg = arg;
  std::uint32_t nothing = 0;  // a mark of sysmon stays: it has the same effect
  if (m->yield_asked.load(std::memory_order_relaxed) == 0) {
    m->yield_asked.compare_exchange_strong(nothing, kLookMark, std::memory_order_relaxed);
  }
}

void clear_before_park() { current_m()->current->before_park = nullptr; }

void run_before_park() {
  G* const g = current_m()->current;
  if (g->before_park == nullptr || g->rt_depth != 0) return;
  std::exchange(g->before_park, nullptr)(g->before_park_arg);
}

}  // namespace tuza::rt
