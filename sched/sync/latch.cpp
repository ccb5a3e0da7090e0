#include <tuza/sched/sync/latch.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/sync/detail/destroyed.h>
#include <tuza/sched/sync/detail/wake_list.h>
#include <tuza/sched/sync/detail/within.h>

namespace tuza {

Latch::Latch(std::int64_t count) : count_(count) {
  if (count < 0) rt::fatal("Latch: a negative count");
}

Latch::~Latch() {
  if (!queue_.empty()) rt::check_nobody_waits("Latch", lock_, queue_);
}

void Latch::count_down(std::int64_t n) {
  const rt::Enter rt;  // a goroutine must not lose its P while it holds the lock
  rt::WakeList released;
  {
    const LockGuard lock(lock_);
    if (n < 0 || n > count_) rt::fatal("Latch: counted down by more than its count");
    count_ -= n;
    if (count_ == 0) released.claim_all(queue_);
  }
  released.wake_all();
}

bool Latch::try_wait() {
  const rt::Enter rt;
  const LockGuard lock(lock_);
  return count_ == 0;
}

bool Latch::wait_until(const rt::Until& until) {
  rt::parking_point();
  rt::Wait wait;
  rt::Waiter place(wait, rt::leave<&Latch::give_up>, this);
  {
    const rt::Enter rt;
    const LockGuard lock(lock_);
    if (count_ == 0) return true;
    queue_.push_back(place);
  }
  return wait.block(WaitReason::kBarrier, until) == &place || !give_up(place);
}

// False: the count has reached zero since.
bool Latch::give_up(rt::Waiter& place) {
  const rt::Enter rt;
  const LockGuard lock(lock_);
  if (place.queued) queue_.remove(place);
  return count_ != 0;
}

Result<void> Latch::wait(const Context& context) {
  return rt::within(context, [this](const rt::Until& until) { return wait_until(until); });
}

}  // namespace tuza
