// A timer with an owner who may change its mind: after disarm() or arm() has returned, no earlier fire is
// ever seen, and the memory may go at any time. What Timer, Ticker and after_func() are made of.
//
// The difficulty is a fire that has begun: the timer is out of its heap, and some M is about to call the
// function. It cannot be called back. So the owner counts it, and the function asks first:
//
//     owner, under lock()                         the function, under lock()
//     disarm: if (armed_ && !clock_stop())        fires: if (under_way_ > 0) {
//               ++under_way_                               --under_way_; stale: return false
//             armed_ = false                             }
//     arm:    the same, and armed_ = true                armed_ = false; return true
//
// Every arming is either stopped or calls the function once. Two calls, of an old arming and of the present
// one, may come in either order: the first counts as the old one, the second is never before its time.
// The destructor waits until nothing is under way; unlocking is the function's last access.
//
// Thread-safe under its lock. Does not park; the destructor waits for an M in the middle of a few
// instructions, if the kernel has taken its core away for as long as that takes. sched/model/timer.pml is
// this in Promela.
#pragma once

#include <tuza/sched/detail/runtime_timer.h>
#include <tuza/sched/detail/spin_lock.h>

#include <cstdint>

namespace tuza::rt {

class Alarm {
 public:
  // `function` runs as runtime_timer.h says. It locks, asks fires(), and after unlocking does not touch this.
  Alarm(Timer::Function function, void* argument) {
    timer_.function = function;
    timer_.argument = argument;
  }
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  // Taken inside the runtime (rt::Enter).
  SpinLock& lock() { return lock_; }

  // -- Under lock().

  // Fires once, at `when_ns` (sched/detail/clock_source.h). True if it was armed; only the new time counts.
  // Outside tuza::run a mistake, and fatal.
  bool arm(std::int64_t when_ns);
  // True if it was armed; now it is not.
  bool disarm();
  // By the function: whether this is the fire of the present arming; it is not armed any more then.
  [[nodiscard]] bool fires();

 private:
  Timer timer_;
  SpinLock lock_;
  std::uint16_t under_way_ = 0;  // guarded by lock_: stale fires that have not yet asked fires()
  bool armed_ = false;           // guarded by lock_
};

}  // namespace tuza::rt
