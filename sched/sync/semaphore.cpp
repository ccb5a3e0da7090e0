#include <tuza/sched/sync/semaphore.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/sync/detail/destroyed.h>
#include <tuza/sched/sync/detail/wake_list.h>
#include <tuza/sched/sync/detail/within.h>

#include <limits>

namespace tuza {

Semaphore::~Semaphore() {
  if (!queue_.empty()) rt::check_nobody_waits("Semaphore", lock_, queue_);
}

std::int64_t Semaphore::not_negative(std::int64_t permits) {
  if (permits < 0) rt::fatal("Semaphore: a negative number of permits");
  return permits;
}

bool Semaphore::take(std::int64_t permits) {
  if (!queue_.empty() || permits_ < permits) return false;
  permits_ -= permits;
  return true;
}

bool Semaphore::try_acquire(std::int64_t permits) {
  not_negative(permits);
  const rt::Enter rt;  // a goroutine must not lose its P while it holds the lock
  const LockGuard lock(lock_);
  return take(permits);
}

// Serves waiters at the head of the queue as long as there are enough permits.
void Semaphore::serve(rt::WakeList& served) {
  while (rt::Waiter* first = queue_.front()) {
    const std::int64_t wanted = *static_cast<const std::int64_t*>(first->slot);
    if (wanted > permits_) return;
    queue_.remove(*first);
    if (!first->wait->claim(*first)) continue;  // it has given up
    permits_ -= wanted;
    served.push_back(*first);
  }
}

bool Semaphore::acquire_until(std::int64_t permits, const rt::Until& until) {
  rt::parking_point();
  not_negative(permits);
  rt::Wait wait;
  rt::Waiter place(wait, rt::leave<&Semaphore::give_up>, this);
  place.slot = &permits;
  {
    const rt::Enter rt;
    const LockGuard lock(lock_);
    if (take(permits)) return true;
    queue_.push_back(place);
  }
  if (wait.block(WaitReason::kSemaphore, until) == &place) return true;
  give_up(place);
  return false;
}

void Semaphore::give_up(rt::Waiter& place) {
  const rt::Enter rt;
  rt::WakeList served;  // waiters that waited only because `place` was ahead of them
  {
    const LockGuard lock(lock_);
    if (place.queued) queue_.remove(place);
    serve(served);
  }
  served.wake_all();
}

void Semaphore::release(std::int64_t permits) {
  not_negative(permits);
  const rt::Enter rt;
  rt::WakeList served;
  {
    const LockGuard lock(lock_);
    if (permits > std::numeric_limits<std::int64_t>::max() - permits_) {
      rt::fatal("Semaphore: more than 2^63 - 1 permits");
    }
    permits_ += permits;
    serve(served);
  }
  served.wake_all();
}

Result<void> Semaphore::acquire(const Context& context, std::int64_t permits) {
  return rt::within(context, [&](const rt::Until& until) { return acquire_until(permits, until); });
}

}  // namespace tuza
