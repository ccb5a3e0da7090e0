// A wait for one of several things, by goroutines and threads alike: the basis of every primitive in
// sched/sync.
//
// A Wait is one wait of one goroutine (which parks) or thread (which sleeps); it lives on the waiter's
// stack. A Waiter is its place in one queue: a mutex wait has one place, a select has one in a queue of each
// channel. A thread that can serve a waiter must claim the Wait first. Only one claim succeeds, and only the
// claimant may touch the Wait, until its last access, wake(). The waiter then takes its other places out of
// their queues.
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
// The releasing thread: under lock_, Waiter* w = queue_.claim_first(); after unlocking, w->wait->wake().
//
// The claim and the park. No lock is held while the goroutine switches away, so it may be claimed, and
// woken, before it is parked. One word orders the two:
//
//     waker                                  waiter, once off its stack (the commit of the park)
//     wake: old = state |= kWoken            old = state |= kParked
//           if (old & kParked) ready(g)      if (old & kWoken) cancel the park
//
// Each side does one atomic step on the same word. Exactly one side therefore comes second, and this side
// resumes the goroutine. The steps are acq_rel: everything that the waker wrote before is visible after
// block().
//
// Lifetime. A Wait may be destroyed as soon as block() has returned. The claimant's last access is its step
// in wake(), or for a parked goroutine ready(g), which needs only g. A thread that fails to claim has
// touched the Wait under the lock of a queue that the Wait was still in, and block()'s caller takes this
// lock to leave the queue. The timer, which has no queue, announces with its single step (kTimerFired) that
// it is over.
//
// The end of the runtime. The waits of goroutines that are left behind end as if their contexts had ended:
// each wait is claimed, and its places leave their queues (Waiter::Leave), before the stacks that hold them
// are unmapped. Only the goroutine does not continue. A primitive that outlives the runtime then has no such
// waiter. Waits of threads stay.
//
// sched/model/select.pml models the claim, the park and the timer in Promela.
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
// claimant until it wakes the waiter, and then to the waiter.
struct Waiter {
  // What the waiter would do with its place next if it could continue. The end of the runtime does it
  // instead.
  //   kUnserved  the place leaves its queue, if it is still there, and the primitive no longer counts on the
  //              waiter: the same as when `until` has ended the wait.
  //   kServed    the primitive gave the waiter what it wanted, and this is lost with the goroutine. Work is
  //              left only where others rely on the waiter to continue.
  enum class Outcome : bool { kUnserved, kServed };
  using Leave = void (*)(Waiter& place, Outcome outcome);

  // `primitive`: the argument of `leave_function`. Without a function: the place is not in a queue but known
  // to another thread, which cannot be made to forget it.
  Waiter(Wait& waiter, Leave leave_function, void* primitive);
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  Wait* wait;
  Waiter* sibling;  // the previous place of the same wait
  Leave leave;
  void* owner;
  Waiter* next = nullptr;
  Waiter* prev = nullptr;
  bool queued = false;
  bool ok = false;          // the primitive's: how the wait was served (for example a value or the end)
  std::uint32_t index = 0;  // the primitive's: which case, how many permits
  void* slot = nullptr;     // the primitive's: where an element goes to or comes from
};

// A Waiter::Leave that calls owner->Function(place) if the wait was not served, and otherwise does nothing.
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

// First come, first served. Thread-unsafe: guarded by the lock of its primitive.
class WaitQueue {
 public:
  [[nodiscard]] bool empty() const { return head_ == nullptr; }
  [[nodiscard]] Waiter* front() const { return head_; }
  void push_back(Waiter& w);
  void push_front(Waiter& w);
  void remove(Waiter& w);  // `w` is queued here
  // Takes waiters off the front until one can be claimed; returns this waiter, or null. The others were
  // claimed elsewhere, and will find that they are no longer queued.
  Waiter* claim_first();

 private:
  Waiter* head_ = nullptr;
  Waiter* tail_ = nullptr;
};

// What ends a wait, apart from being served.
struct Until {
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  Event* event = nullptr;
  std::int64_t deadline_ns = kNever;  // on the runtime's clock (sched/detail/clock_source.h)
};

class Wait {
 public:
  Wait();
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  // -- For the waiter.

  // Parks the goroutine, or blocks the thread, until it is woken or `until` ends the wait. Returns the
  // claimed place, or null if `until` ended the wait; in this case no other thread has claimed the wait, nor
  // will. Call at most once per Wait.
  Waiter* block(WaitReason reason, const Until& until = {});

  // -- For the thread that serves the wait. Any thread.

  // True for exactly one caller. Call under the lock of the queue that `place` is in.
  bool claim(Waiter& place) {
    if ((state_.fetch_or(kClaimed, std::memory_order_acq_rel) & kClaimed) != 0) return false;
    winner_ = &place;
    return true;
  }
  // Called by the claimant, once, when it has written the data for the waiter; best after unlocking. The
  // last access: neither the Wait nor any of its places may be touched afterwards.
  void wake();
  // Like wake(), for the function of a timer: a goroutine queues behind those that were woken before it.
  void wake_last();
  // The waiting goroutine, for reports; null: a thread. Call while a queue that holds the wait is locked.
  [[nodiscard]] G* goroutine() const { return g_; }

  // -- For waits that begin in user code, before block() puts them on record: a PendingWait holds this and
  // the Wait.
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
  std::atomic<std::uint32_t> state_{0};  // the futex on which a thread sleeps
  Waiter* winner_ = nullptr;             // written by the claimant before wake()
  Waiter* places_ = nullptr;             // all of them, the newest first; owner: the waiter
};

inline Waiter::Waiter(Wait& waiter, Leave leave_function, void* primitive)
    : wait(&waiter), sibling(waiter.places_), leave(leave_function), owner(primitive) {
  waiter.places_ = this;
}

}  // namespace tuza::rt
