// What waits on the nil channel, and what waits with a context.
#include <tuza/sched/rt/check.h>
#include <tuza/sched/rt/handoff.h>
#include <tuza/sched/sync/chan_core.h>

namespace tuza::rt {

void wait_on_nil(const Until& until) {
  parking_point();
  Wait wait;
  wait.block(WaitReason::kChanNil, until);
}

void fatal_close_of_nil() { fatal("close of nil channel"); }

}  // namespace tuza::rt
