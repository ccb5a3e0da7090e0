#include <tuza/sched/time/detail/timer_channel.h>

#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/sync/detail/destroyed.h>

#include <utility>

namespace tuza::rt {

TimerChannel::~TimerChannel() { check_nobody_waits("Timer or Ticker", lock(), queue_); }

bool TimerChannel::arm(std::int64_t when_ns) {
  const Enter rt;
  const LockGuard guard(lock());
  return arm_locked(when_ns);
}

bool TimerChannel::arm_locked(std::int64_t when_ns) {
  const bool unreceived = std::exchange(fired_, false);
  return alarm_.arm(when_ns) || unreceived;
}

bool TimerChannel::disarm() {
  const Enter rt;
  const LockGuard guard(lock());
  const bool unreceived = std::exchange(fired_, false);
  return alarm_.disarm() || unreceived;
}

bool TimerChannel::try_wait() {
  const Enter rt;
  const LockGuard guard(lock());
  return std::exchange(fired_, false);
}

bool TimerChannel::wait(const Until& until) {
  parking_point();
  Wait wait;
  Waiter place(wait, leave<&TimerChannel::give_up>, this);
  {
    const Enter rt;
    const LockGuard guard(lock());
    if (std::exchange(fired_, false)) return true;
    queue_.push_back(place);
  }
  if (wait.block(WaitReason::kTimer, until) == &place) return true;
  give_up(place);
  return false;
}

void TimerChannel::give_up(Waiter& place) {
  const Enter rt;
  const LockGuard guard(lock());
  if (place.queued) queue_.remove(place);
}

Waiter* TimerChannel::deliver() {
  Waiter* served = queue_.claim_first();
  if (served != nullptr) {
    served->ok = true;
  } else {
    fired_ = true;
  }
  return served;
}

}  // namespace tuza::rt
