#include <tuza/sched/preempt.h>

#include <tuza/sched/rt/slice/handoff.h>

#include <atomic>

namespace tuza {

void checkpoint() { rt::parking_point(); }

// The handler of the preemption signal runs on this thread and reads the count: program order is sufficient.
NoPreempt::NoPreempt() {
  if (const rt::M* m = rt::current_m(); m != nullptr) ++m->current->no_preempt;
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

NoPreempt::~NoPreempt() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (const rt::M* m = rt::current_m(); m != nullptr)
    m->current->no_preempt += static_cast<std::uint32_t>(-1);
}

}  // namespace tuza
