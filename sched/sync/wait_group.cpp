#include <tuza/sched/sync/wait_group.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/fork.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/park.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/sync/detail/destroyed.h>
#include <tuza/sched/sync/detail/wake_list.h>
#include <tuza/sched/sync/detail/within.h>

namespace tuza {
namespace {

constexpr std::uint64_t kWaitersMask = 0xffff'ffff;

std::int32_t counter_of(std::uint64_t state) { return static_cast<std::int32_t>(state >> 32); }
std::uint32_t waiters_of(std::uint64_t state) { return static_cast<std::uint32_t>(state); }

}  // namespace

WaitGroup::~WaitGroup() {
  const std::uint64_t state = state_.load(std::memory_order_relaxed);
  if (state == 0) return;
  if (waiters_of(state) != 0) rt::check_nobody_waits("WaitGroup", lock_, queue_);
  // Those that the end of the runtime has left behind never run again, and the child of a fork has none.
  if (counter_of(state) != 0 && rt::current_g() != nullptr && !rt::is_forked_child())
    rt::fatal("WaitGroup destroyed before its goroutines have ended: wait() for them");
}

void WaitGroup::add(std::int32_t delta) {
  const auto change = static_cast<std::uint64_t>(static_cast<std::int64_t>(delta)) << 32;
  // release: the work before done(). acquire: the call that reaches zero passes all this work on to the
  // waiters.
  const std::uint64_t before = state_.fetch_add(change, std::memory_order_acq_rel);
  const std::uint64_t now = before + change;
  if (counter_of(now) < 0) rt::fatal("WaitGroup: more done() than add()");
  // Without waiters, the write above was the last access: a wait() that sees zero may return, and the group
  // be destroyed, at once. With waiters, the group lives until they have been released.
  if (counter_of(now) == 0 && waiters_of(now) != 0) release_waiters();
}

void WaitGroup::release_waiters() {
  const rt::Enter rt;  // a goroutine must not lose its P while it holds the lock
  rt::WakeList released;
  {
    const LockGuard lock(lock_);
    released.claim_all(queue_);
    state_.fetch_and(~kWaitersMask, std::memory_order_relaxed);
  }
  released.wake_all();
}

// Counts the waiter and learns, in one step, whether the counter has already reached zero: in that case
// nobody would come to release the waiter. Otherwise the call that brings the counter to zero sees this
// waiter, and finds it in the queue because the lock is held until it is queued. False: the counter is zero.
bool WaitGroup::enqueue(rt::Waiter& place) {
  const rt::Enter rt;
  const LockGuard lock(lock_);
  const std::uint64_t before = state_.fetch_add(1, std::memory_order_acquire);
  if (counter_of(before) == 0) {
    state_.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  queue_.push_back(place);
  return true;
}

// `until` has ended the wait at `place`. If the counter has reached zero by now, the thread that brought it
// there has counted this waiter, is about to release it, and touches the group until then. The waiter must
// not return before that, and waits for the release at `again`.
WaitGroup::GaveUp WaitGroup::give_up(rt::Waiter& place, rt::Waiter& again) {
  const rt::Enter rt;
  const LockGuard lock(lock_);
  if (!place.queued) return GaveUp::kTooLate;
  queue_.remove(place);
  std::uint64_t seen = state_.load(std::memory_order_acquire);
  while (counter_of(seen) != 0) {
    if (state_.compare_exchange_weak(seen, seen - 1, std::memory_order_acquire)) return GaveUp::kYes;
  }
  queue_.push_back(again);
  return GaveUp::kReleaseIsComing;
}

// The goroutine at `place` will never continue. It stays in the count of waiters: the call that brings the
// counter to zero finds the queue without it, and clears the count.
void WaitGroup::leave(rt::Waiter& place) {
  const rt::Enter rt;
  const LockGuard lock(lock_);
  if (place.queued) queue_.remove(place);
}

bool WaitGroup::wait_until(const rt::Until& until) {
  rt::parking_point();
  if (counter_of(state_.load(std::memory_order_acquire)) == 0) return true;
  rt::Wait wait;
  rt::Waiter place(wait, rt::leave<&WaitGroup::leave>, this);
  if (!enqueue(place) || wait.block(WaitReason::kWaitGroup, until) == &place) return true;
  rt::Wait release;
  rt::Waiter again(release, rt::leave<&WaitGroup::leave>, this);
  const GaveUp gave_up = give_up(place, again);
  if (gave_up == GaveUp::kReleaseIsComing) release.block(WaitReason::kWaitGroup);
  return gave_up != GaveUp::kYes;
}

Result<void> WaitGroup::wait(const Context& context) {
  return rt::within(context, [this](const rt::Until& until) { return wait_until(until); });
}

}  // namespace tuza
