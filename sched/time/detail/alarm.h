// A timer that its owner may change at any time: after disarm() or arm() has returned, no earlier fire is
// ever seen, and the memory may be freed at any time. The basis of Timer, Ticker and after_func().
//
// The difficulty is a fire that has begun: the timer is out of its heap, and some M is about to call the
// function. This call cannot be revoked. The owner therefore counts it, and the function checks the count
// first:
//
//     owner, under lock()                         the function, under lock()
//     disarm: if (armed_ && !clock_stop())        fires: if (under_way_ > 0) {
//               ++under_way_                               --under_way_; stale: return false
//             armed_ = false                             }
//     arm:    the same, and armed_ = true                armed_ = false; return true
//
// Every arming is either stopped or calls the function once. Two calls, of an old and of the current arming,
// may come in either order: the first call counts as the old one, and the second is never early. The
// destructor waits until no fire is under way; unlocking is the function's last access.
//
// Thread-safe under its lock. Does not park. The destructor may wait for an M that is in the middle of a few
// instructions, for longer only if the kernel has taken this M's core away. sched/model/timer.pml models
// this in Promela.
#pragma once

#include <tuza/sched/detail/runtime_timer.h>
#include <tuza/sched/detail/spin_lock.h>

#include <cstdint>

namespace tuza::rt {

class Alarm {
 public:
  // `function` runs as described in runtime_timer.h. It must lock, call fires(), and not touch this object
  // after unlocking.
  Alarm(Timer::Function function, void* argument) {
    timer_.function = function;
    timer_.argument = argument;
  }
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // Take the lock inside the runtime (rt::Enter).
  SpinLock& lock() TUZA_RETURNS_LOCK(lock_) { return lock_; }

  // -- Under lock().

  // Fires once, at `when_ns` (sched/detail/clock_source.h). True if the alarm was armed; only the new time
  // counts. Outside tuza::run a programming error, and fatal.
  bool arm(std::int64_t when_ns) TUZA_REQUIRES(lock_);
  // True if the alarm was armed; afterwards it is not.
  bool disarm() TUZA_REQUIRES(lock_);
  // Called by the function: whether this is the fire of the current arming. If so, the alarm is no longer
  // armed.
  [[nodiscard]] bool fires() TUZA_REQUIRES(lock_);

 private:
  Timer timer_;
  SpinLock lock_;
  std::uint16_t under_way_ TUZA_GUARDED_BY(lock_) = 0;  // stale fires that have not yet called fires()
  bool armed_ TUZA_GUARDED_BY(lock_) = false;
};

}  // namespace tuza::rt
