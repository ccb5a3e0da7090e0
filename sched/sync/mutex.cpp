#include <tuza/sched/sync/mutex.h>

#include <tuza/sched/detail/spin.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/sync/detail/destroyed.h>
#include <tuza/sched/sync/detail/within.h>

namespace tuza {

// State that lock_slow() keeps from one attempt to the next.
struct Mutex::Attempt {
  int rounds = 0;             // spins since the caller came or was woken
  bool awake = false;         // this caller must clear kAwake
  bool starving = false;      // the caller has waited for too long
  std::int64_t since_ns = 0;  // when the caller first queued; 0: not yet
};

// For destructors: nobody else uses the mutex, so no lock is taken.
void Mutex::check_nobody_waits(const char* type) TUZA_NO_THREAD_SAFETY_ANALYSIS {
  rt::check_nobody_waits(type, lock_, queue_);
}

// True: the caller has the lock. False: the mutex is locked, and spinning does not pay.
bool Mutex::take_or_spin(Attempt& attempt) {
  std::uint32_t seen = state_.load(std::memory_order_relaxed);
  for (;;) {
    if ((seen & kLocked) == 0) {
      const std::uint32_t mine = (attempt.awake ? seen & ~kAwake : seen) | kLocked;
      if (state_.compare_exchange_weak(seen, mine, std::memory_order_acquire, std::memory_order_relaxed)) {
        return true;
      }
      continue;
    }
    // Spinning on a starving mutex is useless: the lock will be handed over.
    if ((seen & kStarving) != 0 || !rt::worth_spinning(attempt.rounds)) return false;
    ++attempt.rounds;
    // A holder that unlocks during the spinning need not wake a waiter. Relaxed: a hint; taking the lock has
    // its own acquire.
    if (!attempt.awake && (seen & (kWaiters | kAwake)) == kWaiters &&
        state_.compare_exchange_strong(seen, seen | kAwake, std::memory_order_relaxed)) {
      attempt.awake = true;
    }
    rt::spin_a_round();
    seen = state_.load(std::memory_order_relaxed);
  }
}

// Announces the waiter in the same step that sees the lock taken: unlock() either sees the announcement or
// happened before it. If unlock() sees the announcement, it finds the waiter in the queue, because lock_ is
// held until the waiter is queued. False: the lock has become free.
bool Mutex::enqueue(rt::Waiter& place, const Attempt& attempt) {
  const rt::Enter rt;  // a goroutine must not lose its P while it holds lock_
  const LockGuard lock(lock_);
  std::uint32_t seen = state_.load(std::memory_order_relaxed);
  std::uint32_t queued = 0;
  do {
    if ((seen & kLocked) == 0) return false;
    queued = (attempt.awake ? seen & ~kAwake : seen) | kWaiters | (attempt.starving ? kStarving : 0);
  } while (!state_.compare_exchange_weak(seen, queued, std::memory_order_relaxed));
  place.ok = false;
  if (attempt.since_ns == 0) {
    queue_.push_back(place);
  } else {
    queue_.push_front(place);
  }
  return true;
}

// Not analysed: the unlocking goroutine may hand the lock over to this caller.
bool Mutex::lock_slow(WaitReason reason, const rt::Until& until) TUZA_NO_THREAD_SAFETY_ANALYSIS {
  rt::parking_point();
  Attempt attempt;
  while (!take_or_spin(attempt)) {
    rt::Wait wait;
    rt::Waiter place(wait, &Mutex::leave, this);
    const std::int64_t now_ns = rt::now_ns();
    if (!enqueue(place, attempt)) continue;
    if (attempt.since_ns == 0) attempt.since_ns = now_ns;
    attempt.awake = false;
    if (wait.block(reason, until) != &place) {
      give_up(place);
      return false;
    }
    const bool starved = rt::now_ns() - attempt.since_ns > kStarvingNs;
    if (place.ok) {  // handed over. Only the holder, now this caller, ends starving mode
      if (!starved) state_.fetch_and(~kStarving, std::memory_order_relaxed);
      return true;
    }
    attempt.awake = true;
    attempt.rounds = 0;
    attempt.starving = attempt.starving || starved;
  }
  return true;
}

// `until` has ended the wait. The caller may destroy the mutex once give_up() has returned. This is safe: a
// thread that takes a waiter off the queue has released lock_ before this function gets it.
void Mutex::give_up(rt::Waiter& place) {
  const rt::Enter rt;
  const LockGuard lock(lock_);
  if (place.queued) queue_.remove(place);
  if (queue_.empty()) state_.fetch_and(~(kWaiters | kStarving), std::memory_order_relaxed);
}

// Also handles a waiter that was woken to try for the lock: unlock() wakes no other waiter until kAwake is
// cleared.
void Mutex::leave(rt::Waiter& place, rt::Waiter::Outcome outcome) {
  auto& self = *static_cast<Mutex*>(place.owner);
  if (outcome == rt::Waiter::Outcome::kUnserved) {
    self.give_up(place);
  } else if (!place.ok) {
    self.state_.fetch_and(~kAwake, std::memory_order_relaxed);
    if (self.try_lock()) self.unlock();  // wakes the next one
  }
}

// The unlocking holder announces that it is about to wake a waiter. It must do so before it claims one: if a
// spinner set kAwake in between, two callers would be awake, and the waiter that was to be first might come
// second. False: a caller is already awake.
bool Mutex::announce_awake() {
  std::uint32_t seen = state_.load(std::memory_order_relaxed);
  while ((seen & kAwake) == 0) {
    if (state_.compare_exchange_weak(seen, seen | kAwake, std::memory_order_relaxed)) return true;
  }
  return false;
}

// Claims the first waiter and passes the lock on: to this waiter if the mutex is starving, otherwise the
// mutex becomes free. Null: no waiter must be woken, and the mutex is still locked. Inside the runtime.
rt::Waiter* Mutex::next_owner() {
  const LockGuard lock(lock_);
  // kStarving is set under lock_, and cleared under lock_ or by the holder, which is this caller: it cannot
  // change here.
  const bool starving = (state_.load(std::memory_order_relaxed) & kStarving) != 0;
  if (!starving && !announce_awake()) return nullptr;
  rt::Waiter* const next = queue_.claim_first();
  std::uint32_t gone = queue_.empty() ? kWaiters | kStarving : 0;
  if (next == nullptr) {  // all have given up
    state_.fetch_and(~(starving ? gone : gone | kAwake), std::memory_order_relaxed);
    return nullptr;
  }
  next->ok = starving;
  if (!starving) gone |= kLocked;
  state_.fetch_and(~gone, std::memory_order_release);
  return next;
}

// If no waiter was claimed, the last access to the mutex is the step that frees it: the next holder may then
// destroy the mutex. If a waiter was claimed, the mutex lives until this waiter has been woken and has held
// the lock.
void Mutex::unlock_slow() {
  const rt::Enter rt;
  std::uint32_t seen = state_.load(std::memory_order_relaxed);
  for (;;) {
    if ((seen & kLocked) == 0) rt::fatal("unlock of a Mutex that is not locked");
    if (frees(seen)) {
      if (state_.compare_exchange_weak(seen, seen & ~kLocked, std::memory_order_release,
                                       std::memory_order_relaxed)) {
        return;
      }
      continue;
    }
    if (rt::Waiter* next = next_owner()) return next->wait->wake();
    seen = state_.load(std::memory_order_relaxed);
  }
}

Result<void> Mutex::lock(const Context& context) {
  // Not analysed: the lock stays taken when the lambda returns true.
  return rt::within(context, [this](const rt::Until& until) TUZA_NO_THREAD_SAFETY_ANALYSIS {
    return try_lock() || lock_slow(WaitReason::kMutex, until);
  });
}

}  // namespace tuza
