#include <tuza/sched/sync/cond.h>

#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/g.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/sync/detail/destroyed.h>
#include <tuza/sched/sync/detail/wake_list.h>
#include <tuza/sched/sync/detail/within.h>

namespace tuza {

Cond::~Cond() {
  if (!queue_.empty()) rt::check_nobody_waits("Cond", lock_, queue_);
}

Cond::Place::Place(Cond& cond) : cond_(cond), waiter_(wait_, rt::leave<&Cond::leave>, &cond) {
  rt::parking_point();
  const rt::Enter rt;  // a goroutine must not lose its P while it holds the lock
  if (rt::G* g = wait_.goroutine(); g != nullptr) on_record_.emplace(g->pending_wait, &pending_);
  const LockGuard lock(cond_.lock_);
  cond_.queue_.push_back(waiter_);
}

// False: the waiter has been signalled.
bool Cond::leave(rt::Waiter& place) {
  const rt::Enter rt;
  const LockGuard lock(lock_);
  const bool queued = place.queued;
  if (queued) queue_.remove(place);
  return queued;
}

Cond::Place::~Place() {
  if (blocked_ || cond_.leave(waiter_)) return;
  on_record_.reset();
  wait_.block(WaitReason::kCond);  // the thread that has claimed the waiter still has to wake it
  cond_.signal();
}

bool Cond::Place::block(const rt::Until& until) {
  blocked_ = true;
  on_record_.reset();
  if (wait_.block(WaitReason::kCond, until) == &waiter_) return true;
  cond_.leave(waiter_);
  return false;
}

Result<void> Cond::Place::block(const Context& context) {
  return rt::within(context, [this](const rt::Until& until) { return block(until); });
}

void Cond::signal() {
  const rt::Enter rt;
  rt::Waiter* first = nullptr;
  {
    const LockGuard lock(lock_);
    first = queue_.claim_first();
  }
  if (first != nullptr) first->wait->wake();
}

void Cond::broadcast() {
  const rt::Enter rt;
  rt::WakeList woken;
  {
    const LockGuard lock(lock_);
    woken.claim_all(queue_);
  }
  woken.wake_all();
}

}  // namespace tuza
