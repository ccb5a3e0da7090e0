#include <tuza/netpoll/poll/deadline.h>

#include <tuza/sched/detail/coarse_clock.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/enter.h>

namespace tuza::net {

Deadline::Deadline(OnExpiry on_expiry, void* argument) : on_expiry_(on_expiry), argument_(argument) {
  // Set once: while the timer is being armed again, an earlier expiry may still be reading these fields.
  timer_.function = &Deadline::timer_fired;
  timer_.argument = this;
}

namespace {

// The coarse clock lags: it cannot tell that a time has passed, but it can tell that a time is far off. If
// the clock lags by even more than kFar, a deadline that has already passed is armed, and its timer fires at
// once.
bool has_passed(std::int64_t when_ns) {
  constexpr std::int64_t kFar = 1'000'000'000;
  return when_ns <= coarse_now_ns() + kFar && when_ns <= rt::now_ns();
}

}  // namespace

void Deadline::set(std::int64_t when_ns) {
  if (when_ns != kNone && has_passed(when_ns)) {
    deadline_.store(kExpired, std::memory_order_seq_cst);
    on_expiry_(argument_);
    return;
  }
  deadline_.store(when_ns, std::memory_order_seq_cst);
  if (when_ns == kNone) return;
  const std::int64_t armed = armed_.load(std::memory_order_seq_cst);
  if (armed != kNone && armed <= when_ns) return;
  const rt::Enter rt;  // a goroutine must not lose its P while it holds the mutex
  const LockGuard lock(mutex_);
  const std::int64_t latest = deadline_.load(std::memory_order_seq_cst);
  if (latest != kNone && latest != kExpired) arm(latest);
}

void Deadline::arm_again() {
  const rt::Enter rt;
  const LockGuard lock(mutex_);
  if (rt::timer_disarmed(timer_)) armed_.store(kNone, std::memory_order_seq_cst);
  const std::int64_t deadline = deadline_.load(std::memory_order_seq_cst);
  if (armed_.load(std::memory_order_seq_cst) == kNone && deadline != kNone && deadline != kExpired)
    arm(deadline);
}

void Deadline::arm(std::int64_t when_ns) {
  armed_.store(when_ns, std::memory_order_seq_cst);
  if (rt::timer_arm(timer_, when_ns) == rt::Armed::kNoRuntime) armed_.store(kNone, std::memory_order_seq_cst);
}

void Deadline::timer_fired(rt::Timer& timer) {
  auto& self = *static_cast<Deadline*>(timer.argument);
  {
    const LockGuard lock(self.mutex_);
    self.armed_.store(kNone, std::memory_order_seq_cst);
    std::int64_t deadline = self.deadline_.load(std::memory_order_seq_cst);
    do {
      if (deadline == kNone || deadline == kExpired) return;
      if (deadline > rt::now_ns()) return self.arm(deadline);  // moved after the timer was armed
    } while (!self.deadline_.compare_exchange_strong(deadline, kExpired, std::memory_order_seq_cst));
  }
  self.on_expiry_(self.argument_);
}

void Deadline::clear() {
  const rt::Enter rt;
  const LockGuard lock(mutex_);
  deadline_.store(kNone, std::memory_order_seq_cst);
  armed_.store(kNone, std::memory_order_seq_cst);
  rt::timer_stop(timer_);
}

}  // namespace tuza::net
