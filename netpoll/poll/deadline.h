// The deadline of one direction of a descriptor.
//
// A deadline is a point of time, set as often as one likes: a server moves it with every request. Setting
// it later than the timer that is armed is two memory operations; the timer, when it fires too early, looks
// at the deadline and arms itself anew. So a connection costs one timer operation per timeout, not per
// request.
//
// The race between them, from both sides. set(): writes deadline_, reads armed_; if the timer is armed early
// enough, it relies on it. The timer: writes armed_ = kNone, reads deadline_. Both sequentially consistent:
// either set() sees that the timer is no longer armed and arms it, or the timer sees the new deadline.
// Expiry is a value of deadline_ itself, put there by compare-and-swap, so that a deadline that is moved at
// the moment it passes is either expired first and then moved, or moved and not expired.
//
// Thread-safe.
#pragma once

#include <tuza/sched/detail/runtime_timer.h>
#include <tuza/sched/rt/base/raw_mutex.h>

#include <atomic>
#include <cstdint>

namespace tuza::net {

class Deadline {
 public:
  // `on_expiry` is called on a scheduler thread when the deadline has passed, with `argument`.
  using OnExpiry = void (*)(void* argument);
  Deadline(OnExpiry on_expiry, void* argument);
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  // Monotonic time; kNone: no deadline. One in the past expires at once, in this call.
  static constexpr std::int64_t kNone = 0;
  void set(std::int64_t when_ns);

  // In a new runtime: the timer of the one before is gone. Does nothing if it is armed already.
  void arm_again();

  // The deadline has passed and was not set again.
  [[nodiscard]] bool expired() const { return deadline_.load(std::memory_order_seq_cst) == kExpired; }

  // No deadline, timer stopped: for a descriptor that is closed. A timer that is firing just then may still
  // touch this and call on_expiry once: whoever has a Deadline keeps its memory, as descriptors do.
  void clear();

 private:
  static constexpr std::int64_t kExpired = 1;

  static void timer_fired(rt::Timer& timer);
  void arm(std::int64_t when_ns);  // with mutex_ held

  const OnExpiry on_expiry_;
  void* const argument_;
  std::atomic<std::int64_t> deadline_{kNone};
  std::atomic<std::int64_t> armed_{kNone};  // when the timer will fire; kNone: it is not armed
  rt::RawMutex mutex_;                      // serialises arming and firing
  rt::Timer timer_;                         // armed and stopped under mutex_
};

}  // namespace tuza::net
