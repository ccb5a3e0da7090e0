// Waiting for one of several things, by goroutines and threads alike: what every primitive in sched/sync is
// made of.
//
// A Wait is one wait of one goroutine (which parks) or thread (which sleeps); it lives on the waiter's stack.
// A Waiter is its place in one queue: a mutex has one queue, a select has a place in one of each channel.
// Whoever can serve a waiter claims the Wait first. One claim succeeds, and only its owner may touch the
// Wait, until it calls wake(), its last access. The waiter then takes its other places out of their queues.
//
//     Wait wait;
//     Waiter place(wait, leave<&Semaphore::give_up>, this);
//     {
//       const Enter rt;                             // a goroutine must not lose its P while it holds a lock
//       const std::scoped_lock lock(lock_);
//       if (permits_ > 0) return take();
//       queue_.push_back(place);
//     }
//     if (wait.block(WaitReason::kSemaphore, until) == &place) return served;
//     give_up(place);                             // removes it under lock_ if it is still queued
//     return until.error(...)
//
// and who releases: under lock_, Waiter* w = queue_.claim_first(); after unlocking, w->wait->wake().
//
// The claim and the park. No lock is held while the goroutine switches away, so it may be claimed, and woken,
// before it is parked. One word tells them apart:
//
//     waker                                  waiter, once off its stack (the commit of the park)
//     wake: old = state |= kWoken            old = state |= kParked
//           if (old & kParked) ready(g)      if (old & kWoken) take the park back
//
// Each does one atomic step on the same word, so exactly one of them comes second, and that one lets the
// goroutine go on. The steps are acq_rel: what the waker wrote before is visible after block().
//
// Lifetime. A Wait may go as soon as block() has returned. The claimant's last access is its step in wake(),
// or for a parked goroutine ready(g), which needs only g. Who fails to claim has touched it under the lock of
// a queue it was still in, and block()'s caller takes that lock to leave the queue. The timer, which has no
// queue, says by its one step (kTimerFired) that it is over.
//
// The end of the runtime. The waits of goroutines that are left behind end as if their contexts had: each is
// claimed, and its places leave their queues (Waiter::Leave), before the stacks that hold them are unmapped. Only
// the goroutine does not go on. A primitive that outlives the runtime has no such waiter then. Waits of threads stay.
//
// sched/model/select.pml is the claim, the park and the timer in Promela.
#pragma once

#include <tuza/sched/detail/pending_wait.h>
#include <tuza/sched/detail/runtime_timer.h>
#include <tuza/sched/detail/spin_lock.h>
#include <tuza/sched/wait_reason.h>

#include <atomic>
#include <cstdint>
#include <limits>

namespace tuza::rt {

struct G;
class Event;
class Wait;

// A place in a WaitQueue. Its fields are guarded by the lock of the queue; after a claim they belong to the
// claimant until it wakes, and then to the waiter.
struct Waiter {
  // What the waiter would do with its place next, if it could go on: by the end of the runtime in its stead.
  //   kUnserved  the place leaves its queue, if it is still there, and the primitive no longer counts on the
  //              waiter: what is done when `until` has ended the wait.
  //   kServed    the primitive gave the waiter what it wanted, and this is lost with the goroutine. Something is
  //              left to do only where others rely on the waiter going on.
  enum class Outcome : bool { kUnserved, kServed };
  using Leave = void (*)(Waiter& place, Outcome outcome);

  // `primitive`: for `leave_function`. Without a function: not in a queue but known to another thread, which cannot be
  // made to forget it.
  Waiter(Wait& waiter, Leave leave_function, void* primitive);
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  Wait* wait;
  Waiter* sibling;  // the place of the same wait that was made before
  Leave leave;
  void* owner;
  Waiter* next = nullptr;
  Waiter* prev = nullptr;
  bool queued = false;
  bool ok = false;          // the primitive's: how it was served (a value or the end, say)
  std::uint32_t index = 0;  // the primitive's: which case, how many permits
  void* slot = nullptr;     // the primitive's: where an element goes to or comes from
};

// A Waiter::Leave that calls owner->Function(place) where the wait was not served, and does nothing where it was.
template <auto Function>
struct LeaveBy;
template <class Owner, class R, R (Owner::*Function)(Waiter&)>
struct LeaveBy<Function> {
  static void leave(Waiter& place, Waiter::Outcome outcome) {
    if (outcome == Waiter::Outcome::kUnserved) (void)(static_cast<Owner*>(place.owner)->*Function)(place);
  }
};
template <auto Function>
inline constexpr Waiter::Leave leave = &LeaveBy<Function>::leave;

// First come, first served. Thread-unsafe: the lock of its primitive guards it.
class WaitQueue {
 public:
  [[nodiscard]] bool empty() const { return head_ == nullptr; }
  [[nodiscard]] Waiter* front() const { return head_; }
  void push_back(Waiter& w);
  void push_front(Waiter& w);
  void remove(Waiter& w);  // `w` is queued here
  // Takes waiters off the front until one could be claimed: that one, or null. The others were claimed
  // elsewhere, and find that they are queued no more.
  Waiter* claim_first();

 private:
  Waiter* head_ = nullptr;
  Waiter* tail_ = nullptr;
};

// What ends a wait besides being served.
struct Until {
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  Event* event = nullptr;
  std::int64_t deadline_ns = kNever;  // of the runtime's clock (sched/detail/clock_source.h)
};

class Wait {
 public:
  Wait();
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  // -- For the waiter.

  // Parks the goroutine, or blocks the thread, until it is woken, or `until` ends the wait. Returns the
  // claimed place, or null if `until` ended it; then nobody else has claimed it, nor will. At most once for
  // each Wait.
  Waiter* block(WaitReason reason, const Until& until = {});

  // -- For whoever serves it. Any thread.

  // True for exactly one caller, under the lock of the queue that `place` is in.
  bool claim(Waiter& place) {
    if ((state_.fetch_or(kClaimed, std::memory_order_acq_rel) & kClaimed) != 0) return false;
    winner_ = &place;
    return true;
  }
  // By the claimant, once, when it has written what the waiter shall see; best after unlocking. The last
  // access: neither the Wait nor any of its places may be touched any more.
  void wake();
  // As wake(), by the function of a timer: a goroutine queues behind those that were woken before it.
  void wake_last();
  // Who waits, for reports; null: a thread. While a queue that it is in is locked.
  [[nodiscard]] G* goroutine() const { return g_; }

  // -- For waits that begin in user code, before block() puts them on record: a PendingWait has these and the Wait.
  static const Withdrawal kWithdrawal;

 private:
  friend struct Waiter;

  //   3            2         1        0
  //  | TimerFired | Woken | Parked | Claimed |
  static constexpr std::uint32_t kClaimed = 1;
  static constexpr std::uint32_t kParked = 2;
  static constexpr std::uint32_t kWoken = 4;
  static constexpr std::uint32_t kTimerFired = 8;

  [[nodiscard]] bool woken() const { return (state_.load(std::memory_order_acquire) & kWoken) != 0; }
  bool claim_for_end();
  void sleep(WaitReason reason);
  void sleep_with_timer(std::int64_t deadline_ns, WaitReason reason);
  void sleep_until(std::int64_t deadline_ns);
  static void on_timer(Timer& timer);
  static bool commit(G* g, void* self);
  static void withdraw_claim(G& g, void* self);
  static bool withdraw_places(void* self);

  G* const g_;                           // null: a thread waits
  std::atomic<std::uint32_t> state_{0};  // a thread sleeps on it
  Waiter* winner_ = nullptr;             // written by the claimant before wake()
  Waiter* places_ = nullptr;             // all of them, the youngest first; owner: the waiter
};

inline Waiter::Waiter(Wait& waiter, Leave leave_function, void* primitive)
    : wait(&waiter), sibling(waiter.places_), leave(leave_function), owner(primitive) {
  waiter.places_ = this;
}

}  // namespace tuza::rt
