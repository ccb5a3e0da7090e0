#include <tuza/sched/sync/detail/event.h>

#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/sync/detail/destroyed.h>
#include <tuza/sched/sync/detail/wake_list.h>

namespace tuza::rt {

Event::~Event() {
  if (!queue_.empty()) check_nobody_waits("Event", lock_, queue_);
}

bool Event::add(Waiter& place) {
  const Enter rt;  // a goroutine must not lose its P while it holds the lock
  const LockGuard lock(lock_);
  if (happened()) return false;
  queue_.push_back(place);
  return true;
}

void Event::remove(Waiter& place) {
  const Enter rt;
  const LockGuard lock(lock_);
  if (place.queued) queue_.remove(place);
}

bool Event::fire(void (*first)(void* argument), void* argument) {
  const Enter rt;
  WakeList woken;
  {
    const LockGuard lock(lock_);
    if (happened()) return false;
    if (first != nullptr) first(argument);
    happened_.store(true, std::memory_order_release);
    woken.claim_all(queue_);
  }
  woken.wake_all();
  return true;
}

bool Event::wait(WaitReason reason, const Until& until) {
  parking_point();
  if (happened()) return true;
  Wait wait;
  Waiter place(wait, leave<&Event::remove>, this);
  if (!add(place)) return true;
  if (wait.block(reason, until) == &place) return true;
  remove(place);
  return false;
}

}  // namespace tuza::rt
