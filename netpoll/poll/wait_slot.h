// The slot where one goroutine waits for one direction of one descriptor: a binary semaphore shared with the
// poller.
//
//   nil -------- announce ------> waiting ------- commit -------> G (parked)
//    ^  \                             \                            |
//    |   `-- event --> ready <-- event +---------- event ----------'   the event takes G and readies it
//    `------ consume ---'
//
//   kNil      no waiter, no event
//   kReady    an event has arrived and is not consumed yet
//   kWaiting  a goroutine is about to park; an event now cancels the park
//   G         the goroutine is parked; the thread that takes it out of the slot readies it
//
// The re-check. A goroutine that finds no event announces itself (kWaiting), then checks the reasons not to
// wait (closed, deadline passed), then parks. A thread that creates such a reason first writes it, then takes
// the goroutine out of the slot. So either the goroutine sees the reason, or the thread sees the
// announcement: both sides are sequentially consistent, and both write the slot.
//
// Thread-safe; one waiter at a time (ensured by FdMutex). Source: Go's runtime/netpoll.go.
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
  // Consumes an event that has arrived. False: there is none.
  [[nodiscard]] bool consume() {
    std::uintptr_t ready = kReady;
    return state_.load(std::memory_order_relaxed) == kReady &&
           state_.compare_exchange_strong(ready, kNil, std::memory_order_acquire, std::memory_order_relaxed);
  }

  // Whether an event has arrived that nobody has consumed. Relaxed: the answer is a hint, which may be out of date in any case.
  [[nodiscard]] bool has_event() const { return state_.load(std::memory_order_relaxed) == kReady; }

  // Parks until an event arrives, and consumes it. False: woken for another reason, or `give_up` (which
  // checks the reasons not to wait) was true after the announcement. `pending` tells the end of the runtime
  // how to withdraw the wait (with withdraw()); null for a slot that the runtime outlives. `source`: of the event. A wait
  // for a goroutine is no wait for the poller: it neither keeps a deadlock from being noticed nor a fake clock from jumping.
  enum class Source : bool { kPoller, kGoroutine };
  template <class GiveUp>
  [[nodiscard]] bool wait(WaitReason reason, GiveUp give_up, rt::PendingWait* pending = nullptr,
                          Source source = Source::kPoller) {
    if (!announce()) return true;
    if (!give_up()) park(reason, pending, source);
    return retract();
  }

  // Delivers an event or, if `ready` is false, a reason to give up. Returns the waiting goroutine, which the
  // caller must ready, or null.
  [[nodiscard]] rt::G* wake(bool ready);

  // At the end of the runtime: takes out `g`, which is parked here and never runs again. If another thread is
  // about to ready `g`, waits for that.
  void withdraw(rt::G& g);

  // Prepares this memory for its next use, when there is no waiter.
  void reset() { state_.store(kNil, std::memory_order_release); }

 private:
  static constexpr std::uintptr_t kNil = 0;
  static constexpr std::uintptr_t kReady = 1;
  static constexpr std::uintptr_t kWaiting = 2;

  bool announce();  // false: an event was consumed instead
  void park(WaitReason reason, rt::PendingWait* pending, Source source);
  bool retract();  // back to kNil; true if an event had arrived
  static bool commit(rt::G* g, void* self);
  static bool commit_to_poller(rt::G* g, void* self);

  std::atomic<std::uintptr_t> state_{kNil};
};

}  // namespace tuza::net
