#include <tuza/sched/detail/coarse_clock.h>

#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/sched.h>

namespace tuza {

std::int64_t coarse_now_ns() {
  if (const rt::M* const m = rt::current_m(); m != nullptr) [[likely]]
    return m->sched->coarse_ns.load(std::memory_order_relaxed);
  const rt::ExternalEntry entry(nullptr);
  return entry.sched() == nullptr ? rt::now_ns() : entry.sched()->coarse_ns.load(std::memory_order_relaxed);
}

}  // namespace tuza
