// Where one goroutine waits for one direction of one descriptor: a binary semaphore with the poller.
//
//   nil -------- announce ------> waiting ------- commit -------> G (parked)
//    ^  \                             \                            |
//    |   `-- event --> ready <-- event +---------- event ----------'   the event takes G and readies it
//    `------ consume ---'
//
//   kNil      nobody waits, nothing has happened
//   kReady    an event came that nobody has consumed yet
//   kWaiting  a goroutine is about to park; an event now turns the park back
//   G         the goroutine is parked; whoever takes it out of the slot readies it
//
// The re-check. A goroutine that finds no event announces itself (kWaiting), then looks at the reasons not
// to wait (closed, deadline passed), then parks. Whoever makes such a reason true writes it first and takes
// the goroutine out of the slot then. So either the goroutine sees the reason, or the other sees the
// announcement: both are sequentially consistent, and both write the slot.
//
// Thread-safe; one waiter at a time (the FdMutex sees to that). Source: Go's runtime/netpoll.go.
#pragma once

#include <tuza/sched/wait_reason.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {
struct G;
struct PendingWait;
}  // namespace tuza::rt

namespace tuza::net {

class WaitSlot {
 public:
  // Takes an event that has come. False: none has.
  [[nodiscard]] bool consume() {
    std::uintptr_t ready = kReady;
    return state_.load(std::memory_order_relaxed) == kReady &&
           state_.compare_exchange_strong(ready, kNil, std::memory_order_acquire, std::memory_order_relaxed);
  }

  // Parks until an event comes, and takes it. False: woken for another reason, or `give_up` (which gives one)
  // was true after the announcement. `pending`: how the end of the runtime withdraws the wait (with
  // withdraw()); null for a slot that the runtime outlives.
  template <class GiveUp>
  [[nodiscard]] bool wait(WaitReason reason, GiveUp give_up, rt::PendingWait* pending = nullptr) {
    if (!announce()) return true;
    if (!give_up()) park(reason, pending);
    return retract();
  }

  // An event, or (`ready` false) a reason to give up: returns the goroutine that waits, which the caller
  // must ready, or null.
  [[nodiscard]] rt::G* wake(bool ready);

  // At the end of the runtime: takes out `g`, which is parked here and never runs again. If somebody is about to
  // ready it, waits for that.
  void withdraw(rt::G& g);

  // For the next use of this memory, when nobody waits.
  void reset() { state_.store(kNil, std::memory_order_release); }

 private:
  static constexpr std::uintptr_t kNil = 0;
  static constexpr std::uintptr_t kReady = 1;
  static constexpr std::uintptr_t kWaiting = 2;

  bool announce();  // false: consumed an event instead
  void park(WaitReason reason, rt::PendingWait* pending);
  bool retract();  // back to kNil; true if an event had come
  static bool commit(rt::G* g, void* self);

  std::atomic<std::uintptr_t> state_{kNil};
};

}  // namespace tuza::net
