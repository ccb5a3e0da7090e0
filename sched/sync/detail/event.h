// A one-time event that releases all its waiters: the end of a context, the arrival of a result. Waits for
// other things can include an event as a further source (Until, select).
//
// Thread-safe. Does not park. Ordering: everything done before fire() is visible to a thread that sees that
// the event has happened.
// Lifetime: may be destroyed when fire() has returned and nobody waits.
#pragma once

#include <tuza/sched/sync/detail/wait.h>

#include <atomic>

namespace tuza::rt {

class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();

  [[nodiscard]] bool happened() const { return happened_.load(std::memory_order_acquire); }
  // True for the call that made the event happen. In that call only, `first(argument)` runs before, under
  // the lock: it records the reason, and takes only a few instructions.
  bool fire(void (*first)(void* argument) = nullptr, void* argument = nullptr);
  // Waits for the event; false if `until` ended the wait first. Parks, or blocks a thread.
  bool wait(WaitReason reason, const Until& until = {});

  // For waits in several queues. False if the event has already happened; `place` is not queued then.
  [[nodiscard]] bool add(Waiter& place);
  void remove(Waiter& place);  // if it is still queued

  // For select, which takes the locks of all its cases at once: SelectSource (select_core.h). Under lock().
  SpinLock& lock() TUZA_RETURNS_LOCK(lock_) { return lock_; }
  WaitQueue& queue() TUZA_NO_THREAD_SAFETY_ANALYSIS {  // only the address, before select locks
    return queue_;
  }
  [[nodiscard]] bool ready() const { return happened(); }
  void take() {}  // nothing to consume: an event stays as it is

 private:
  SpinLock lock_;
  std::atomic<bool> happened_{false};       // written under lock_
  WaitQueue queue_ TUZA_GUARDED_BY(lock_);  // empty once the event has happened
};

}  // namespace tuza::rt
