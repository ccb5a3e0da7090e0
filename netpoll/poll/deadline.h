// The deadline of one direction of a descriptor.
//
// A deadline is a point in time that may be set any number of times: a server moves it with every request.
// Setting it to a later time than that of the armed timer costs two memory operations; when the timer fires
// too early, it reads the deadline and arms itself again. A connection thus costs one timer operation per
// timeout, not per request.
//
// The race between set() and the timer, from both sides. set() writes deadline_, then reads armed_; if the
// timer is armed early enough, set() relies on it. The timer writes armed_ = kNone, then reads deadline_. All
// four accesses are sequentially consistent: either set() sees that the timer is no longer armed, and arms
// it, or the timer sees the new deadline. Expiry is a value of deadline_ itself, written by compare-and-swap,
// so that a deadline that is moved just as it passes is either expired first and then moved, or moved and not
// expired.
//
// Two clocks. A caller's time is one of tuza::now(). A deadline of the kernel's things runs on the real clock, since their
// time cannot be faked: while there is a FakeClock, what remains on it is what has to pass. A deadline that is in memory
// runs on the clock of tuza::now() itself.
//
// Thread-safe.
#pragma once

#include <tuza/sched/detail/runtime_timer.h>
#include <tuza/sched/rt/base/raw_mutex.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace tuza::net {

class Deadline {
 public:
  // `on_expiry` is called with `argument`, on a scheduler thread, when the deadline has passed.
  using OnExpiry = void (*)(void* argument);
  Deadline(OnExpiry on_expiry, void* argument, bool in_memory = false);
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  // A time of tuza::now(); kNone: no deadline. A deadline in the past expires at once, in this call.
  static constexpr std::int64_t kNone = 0;
  void set(std::int64_t when_ns);
  // For set(): steady_clock is CLOCK_MONOTONIC. max() is no deadline; times at or before its zero are mapped to its first
  // nanosecond.
  static std::int64_t to_ns(std::chrono::steady_clock::time_point when) {
    if (when == std::chrono::steady_clock::time_point::max()) return kNone;
    return std::max<std::int64_t>(
        1, std::chrono::duration_cast<std::chrono::nanoseconds>(when.time_since_epoch()).count());
  }
  // `after_ns` from now; at once if that is not positive.
  void set_after(std::int64_t after_ns);

  // Called in a new runtime: the timer of the previous runtime no longer exists. Does nothing if the timer is
  // armed.
  void arm_again();

  // True if the deadline has passed and was not set again.
  [[nodiscard]] bool expired() const { return deadline_.load(std::memory_order_seq_cst) == kExpired; }

  // Removes the deadline and stops the timer, for a descriptor that is closed. A timer that fires at the same
  // moment may still touch this object and call on_expiry once: the owner of a Deadline must keep its memory,
  // as descriptors do.
  void clear();

 private:
  static constexpr std::int64_t kExpired = 1;

  static void timer_fired(rt::Timer& timer);
  [[nodiscard]] std::int64_t own_now_ns() const;
  void set_near(std::int64_t when_ns);
  void set_ahead(std::int64_t when_ns);
  void expire();
  void arm(std::int64_t when_ns) TUZA_REQUIRES(mutex_);

  const OnExpiry on_expiry_;
  void* const argument_;
  const bool in_memory_;
  std::atomic<std::int64_t> deadline_{kNone};
  std::atomic<std::int64_t> armed_{kNone};  // when the timer will fire; kNone: not armed
  rt::RawMutex mutex_;                      // serialises arming and firing
  rt::Timer timer_;                         // armed and stopped under mutex_
};

}  // namespace tuza::net
