// The waiting side of a timer, like the channel of a timer in Go. It holds at most one unreceived fire;
// waiting callers receive fires first come, first served.
//
// Thread-safe. Lifetime: may be destroyed while armed or firing, but not while a caller waits (fatal).
#pragma once

#include <tuza/sched/sync/detail/wait.h>
#include <tuza/sched/time/detail/alarm.h>

#include <cstdint>

namespace tuza::rt {

class TimerChannel {
 public:
  TimerChannel(Timer::Function function, void* argument) : alarm_(function, argument) {}
  ~TimerChannel();
  TimerChannel(const TimerChannel&) = delete;
  TimerChannel& operator=(const TimerChannel&) = delete;

  // True if a fire was pending, or had not been received; from now on only the new arming counts.
  bool arm(std::int64_t when_ns);
  bool disarm();
  // Inside the runtime.
  bool arm_locked(std::int64_t when_ns) TUZA_REQUIRES(lock());

  // Waits for a fire and takes it; false if `until` ended the wait first. Parks, or blocks a thread.
  bool wait(const Until& until = {});
  bool try_wait();

  // Called by the function of the timer. If this fire counts, passes it to the longest waiter, or keeps it.
  // `next_ns` returns when the next fire is due; Until::kNever: there is none.
  template <class Next>
  void fire(Next&& next_ns);

  // For select, under lock(): a place in queue() is served by claiming it; ready() is true if a fire is
  // kept, which take() removes.
  SpinLock& lock() TUZA_RETURNS_LOCK(alarm_.lock()) { return alarm_.lock(); }
  WaitQueue& queue() TUZA_NO_THREAD_SAFETY_ANALYSIS {  // only the address, before select locks
    return queue_;
  }
  [[nodiscard]] bool ready() TUZA_REQUIRES(lock()) { return fired_; }
  void take() TUZA_REQUIRES(lock()) { fired_ = false; }

 private:
  Waiter* deliver() TUZA_REQUIRES(lock());
  void give_up(Waiter& place);

  [[no_unique_address]] Alarm alarm_;
  bool fired_ TUZA_GUARDED_BY(lock()) = false;  // false while a caller is queued
  WaitQueue queue_ TUZA_GUARDED_BY(lock());
};

template <class Next>
void TimerChannel::fire(Next&& next_ns) {
  Waiter* served = nullptr;
  lock().lock();
  if (alarm_.fires()) {
    served = deliver();
    if (const std::int64_t next = next_ns(); next != Until::kNever) alarm_.arm(next);
  }
  lock().unlock();  // the last access, unless the alarm is armed again
  if (served != nullptr) served->wait->wake_last();
}

}  // namespace tuza::rt
