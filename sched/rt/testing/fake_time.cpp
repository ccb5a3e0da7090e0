#include <tuza/sched/rt/testing/fake_time.h>

#include <tuza/sched/detail/clock_source.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/idle/idle.h>
#include <tuza/sched/rt/idle/procs.h>
#include <tuza/sched/rt/park.h>
#include <tuza/sched/rt/report/deadlock.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/slice/handoff.h>

#include <algorithm>
#include <limits>

namespace tuza::rt {

std::atomic<FakeTime*> FakeTime::installed_{nullptr};

bool FakeTime::install() {
  static FakeTime& fake = *new FakeTime;
  const Enter rt;
  const LockGuard lock(fake.mutex_);
  if (fake.governs_) return false;
  fake.governs_ = true;
  fake.now_ns_.store(rt::now_ns(), std::memory_order_release);
  clock_near_ns.store(std::numeric_limits<std::int64_t>::max() / 2, std::memory_order_relaxed);
  installed_.store(&fake, std::memory_order_release);
  return true;
}

void FakeTime::uninstall() {
  // The next clock begins at an earlier time than this one ends. An M that is still firing the timers that
  // were due on this clock would also fire timers of the next clock.
  while (firing_.load(std::memory_order_acquire)) yield();
  const Enter rt;
  const ExternalEntry entry;
  {
    const LockGuard lock(mutex_);
    governs_ = false;
    installed_.store(nullptr, std::memory_order_release);
    clock_near_ns.store(kClockNearNs, std::memory_order_relaxed);
    P& p = rt.p() != nullptr ? *rt.p() : entry.sched()->p(0);
    heap_.move_all(p.timers, rt::now_ns() - now_ns());
    while (Waiter* w = settlers_.claim_first()) w->wait->wake();
  }
  if (rt.p() == nullptr) wake_one(*entry.sched());  // as timer_arm() does
}

void FakeTime::runtime_ended() {
  FakeTime* fake = installed();
  if (fake == nullptr) return;
  const LockGuard lock(fake->mutex_);
  fake->governs_ = false;
  installed_.store(nullptr, std::memory_order_release);
  clock_near_ns.store(kClockNearNs, std::memory_order_relaxed);
  fake->heap_.disarm_all();
}

Armed FakeTime::arm(Timer& timer, std::int64_t when_ns) {
  const Enter rt;
  const LockGuard lock(mutex_);
  if (!governs_) return timer_arm(timer, when_ns);
  const bool overdue = when_ns <= now_ns();
  if (!overdue && timer.heap.load(std::memory_order_acquire) == &heap_ && heap_.move(timer, when_ns)) {
    return Armed::kMoved;
  }
  const bool was_armed = timer_stop(timer);
  if (overdue) {
    timer_arm(timer, rt::now_ns());  // a timer that is due need not wait for a standstill
  } else {
    heap_.add(timer, when_ns);
  }
  return was_armed ? Armed::kMoved : Armed::kAdded;
}

void FakeTime::settle() {
  parking_point();
  Wait wait;
  Waiter place(wait, leave<&FakeTime::leave_settlers>, this);
  {
    const Enter rt;
    const LockGuard lock(mutex_);
    if (!governs_) return;
    settlers_.push_back(place);
  }
  wait.block(WaitReason::kTest);
}

void FakeTime::leave_settlers(Waiter& place) {
  const LockGuard lock(mutex_);
  if (place.queued) settlers_.remove(place);
}

bool FakeTime::something_waits() {
  const LockGuard lock(mutex_);
  return governs_ && (!settlers_.empty() || heap_.next_ns() != TimerHeap::kNever);
}

bool FakeTime::pass(M* m) {
  FakeTime* fake = installed();
  if (fake == nullptr) return false;
  {
    const Turn turn(fake->turn_);
    // acquire_p() fails if other threads have just taken the Ps for work: then this is not a standstill.
    if (!fake->something_waits() || !stands_still(*m->sched) || !acquire_p(m)) return false;
    fake->firing_.store(true, std::memory_order_relaxed);  // goroutines see it once they are woken
  }
  fake->let_go();
  fake->firing_.store(false, std::memory_order_release);
  return true;
}

void FakeTime::let_go() {
  Waiter* settler = nullptr;
  std::int64_t next = TimerHeap::kNever;
  {
    const LockGuard lock(mutex_);
    settler = settlers_.claim_first();
    next = heap_.next_ns();
    if (settler == nullptr && next != TimerHeap::kNever) {
      now_ns_.store(std::max(now_ns(), next), std::memory_order_release);
    }
  }
  if (settler != nullptr) {
    settler->wait->wake();
  } else if (next != TimerHeap::kNever) {
    heap_.run_due(next);
  }
}

}  // namespace tuza::rt
