// Something that happens once, and lets everybody go who waits for it: the end of a context, a result that is
// there. What waits for other things too takes it as one more (Until, select).
//
// Thread-safe. Does not park. Ordering: what was done before fire() is visible to who sees that it happened.
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
  // True for the call that made it happen. `first(argument)` runs before that, under the lock, in that call
  // only: it writes why, and takes a few instructions.
  bool fire(void (*first)(void* argument) = nullptr, void* argument = nullptr);
  // Waits for it; false if `until` came first. Parks, or blocks a thread.
  bool wait(WaitReason reason, const Until& until = {});

  // For waits in several queues: false if it has happened already, and `place` is not queued then.
  [[nodiscard]] bool add(Waiter& place);
  void remove(Waiter& place);  // if it is still queued

  // For select, which takes the locks of all its cases at once: SelectSource (select_core.h). Under lock().
  SpinLock& lock() { return lock_; }
  WaitQueue& queue() { return queue_; }
  [[nodiscard]] bool ready() const { return happened(); }
  void take() {}  // it stays as it is

 private:
  SpinLock lock_;
  std::atomic<bool> happened_{false};  // written under lock_
  WaitQueue queue_;                    // guarded by lock_; empty once it has happened
};

}  // namespace tuza::rt
