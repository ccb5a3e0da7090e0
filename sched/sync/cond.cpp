#include <tuza/sched/sync/cond.h>

#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/handoff.h>
#include <tuza/sched/sync/destroyed.h>
#include <tuza/sched/sync/wake_list.h>
#include <tuza/sched/sync/within.h>

#include <mutex>

namespace tuza {

Cond::~Cond() {
  if (!queue_.empty()) rt::destroyed_with_waiters("Cond", queue_);
}

Cond::Place::Place(Cond& cond) : cond_(cond), waiter_(wait_) {
  rt::parking_point();
  const rt::Enter rt;  // a goroutine must not lose its P while it holds the lock
  const std::scoped_lock lock(cond_.lock_);
  cond_.queue_.push_back(waiter_);
}

// False: it has been signalled.
bool Cond::Place::leave() {
  const rt::Enter rt;
  const std::scoped_lock lock(cond_.lock_);
  const bool queued = waiter_.queued;
  if (queued) cond_.queue_.remove(waiter_);
  return queued;
}

Cond::Place::~Place() {
  if (blocked_ || leave()) return;
  wait_.block(WaitReason::kCond);  // whoever has claimed it still has to wake it
  cond_.signal();
}

bool Cond::Place::block(const rt::Until& until) {
  blocked_ = true;
  if (wait_.block(WaitReason::kCond, until) == &waiter_) return true;
  leave();
  return false;
}

Result<void> Cond::Place::block(const Context& context) {
  return rt::within(context, [this](const rt::Until& until) { return block(until); });
}

void Cond::signal() {
  const rt::Enter rt;
  rt::Waiter* first = nullptr;
  {
    const std::scoped_lock lock(lock_);
    first = queue_.claim_first();
  }
  if (first != nullptr) first->wait->wake();
}

void Cond::broadcast() {
  const rt::Enter rt;
  rt::WakeList woken;
  {
    const std::scoped_lock lock(lock_);
    woken.claim_all(queue_);
  }
  woken.wake_all();
}

}  // namespace tuza
