#include <tuza/netpoll/poll/deadline.h>

#include <tuza/sched/detail/clock_source.h>
#include <tuza/sched/detail/coarse_clock.h>
#include <tuza/sched/detail/deadline.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/enter.h>

#include <chrono>

namespace tuza::net {

Deadline::Deadline(OnExpiry on_expiry, void* argument, bool in_memory)
    : on_expiry_(on_expiry), argument_(argument), in_memory_(in_memory) {
  // Set once: while the timer is being armed again, an earlier expiry may still be reading these fields.
  timer_.function = &Deadline::timer_fired;
  timer_.argument = this;
}

std::int64_t Deadline::own_now_ns() const { return in_memory_ ? rt::clock_now_ns() : rt::now_ns(); }

// The coarse clock lags: it cannot tell that a time has passed, but it can tell that a time is far off. If the clock lags
// by even more than clock_near_ns, a deadline that has already passed is armed, and its timer fires at once.
void Deadline::set(std::int64_t when_ns) {
  if (when_ns != kNone && when_ns <= coarse_now_ns() + rt::clock_near_ns.load(std::memory_order_relaxed))
    return set_near(when_ns);
  set_ahead(when_ns);
}

void Deadline::set_near(std::int64_t when_ns) {
  const std::int64_t remaining_ns =
      when_ns - rt::clock_now_ns();  // both are times of one clock, and positive
  if (remaining_ns <= 0) return expire();
  const bool on_its_clock = in_memory_ || !rt::clock_is_fake();
  set_ahead(on_its_clock ? when_ns : rt::time_after(rt::now_ns(), std::chrono::nanoseconds(remaining_ns)));
}

void Deadline::set_after(std::int64_t after_ns) {
  if (after_ns <= 0) return expire();
  set_ahead(rt::time_after(own_now_ns(), std::chrono::nanoseconds(after_ns)));
}

void Deadline::expire() {
  deadline_.store(kExpired, std::memory_order_seq_cst);
  on_expiry_(argument_);
}

// `when_ns`, on the own clock, has probably not passed.
void Deadline::set_ahead(std::int64_t when_ns) {
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
  const rt::Armed armed = in_memory_ ? rt::clock_arm(timer_, when_ns) : rt::timer_arm(timer_, when_ns);
  if (armed == rt::Armed::kNoRuntime) armed_.store(kNone, std::memory_order_seq_cst);
}

void Deadline::timer_fired(rt::Timer& timer) {
  auto& self = *static_cast<Deadline*>(timer.argument);
  {
    const LockGuard lock(self.mutex_);
    self.armed_.store(kNone, std::memory_order_seq_cst);
    std::int64_t deadline = self.deadline_.load(std::memory_order_seq_cst);
    do {
      if (deadline == kNone || deadline == kExpired) return;
      if (deadline > self.own_now_ns()) return self.arm(deadline);  // moved after the timer was armed
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
