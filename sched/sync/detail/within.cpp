#include <tuza/sched/sync/detail/within.h>

#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/sync/detail/event.h>

namespace tuza::rt {

bool may_wait(const tuza::Context& context) {
  parking_point();
  const Event* const end = context.event();
  return end == nullptr || !end->happened();
}

}  // namespace tuza::rt
