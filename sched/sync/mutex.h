// Public header, part of <tuza/sync.h>.
//
// Mutex: a lock for goroutines and threads. It parks the goroutine where std::mutex would block the thread.
//
//     tuza::Mutex mutex;
//     { const std::scoped_lock lock(mutex); table[key] = value; }
//     if (mutex.lock(context)) { ...; mutex.unlock(); }            // gives up when the context ends
//
// The lock may be held across parking calls, and may be unlocked by another goroutine or thread than the one
// that locked it. It is not recursive.
//
// There are two modes, as in Go. In normal mode the mutex is free after unlock(), and the first caller to
// try gets it: a caller that is already running gets it without a switch, ahead of a waiter that was woken
// for it. Waiters are woken in the order in which they came. A waiter that wakes up and fails to get the
// lock goes back to the front of the queue. If it has waited for more than 1 ms by then, the mutex becomes
// starving: unlock() hands the lock directly to the first waiter, and nobody overtakes. Starving mode ends
// when a waiter gets the lock that has waited for less, or that is the last one.
//
// Clang's -Wthread-safety knows the mutex as a capability. It does not see through std::scoped_lock; LockGuard is the
// same for one lock, and it is seen. The overloads with a context are not seen either.
//
// Ordering: everything done before unlock() is visible after the next lock().
// Lifetime: may be destroyed as soon as nobody holds it or waits for it, even while the unlock() that
// released it is still returning: unlock() does not touch the mutex after the release.
//
// Thread-safe; any thread, inside and outside tuza::run. lock() parks the goroutine (a thread blocks) if it
// has to wait; try_lock() and unlock() never park.
//
// Source: Go's sync.Mutex (its two modes). Go counts the waiters, and they wait in a semaphore. Here they
// wait in a queue with its own lock, so that a waiter can leave when its context ends. sched/model/mutex.pml
// models the protocol in Promela.
#pragma once

#include <tuza/sched/detail/deadline.h>
#include <tuza/sched/detail/lock_guard.h>
#include <tuza/sched/detail/spin_lock.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/detail/wait.h>

#include <atomic>
#include <chrono>
#include <cstdint>

namespace tuza {

class Context;

class TUZA_CAPABILITY("Mutex") Mutex {
 public:
  // A waiter that wakes up after more than this time, and fails to get the lock, turns on starving mode.
  static constexpr std::int64_t kStarvingNs = 1'000'000;

  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  ~Mutex() {
    if (state_.load(std::memory_order_relaxed) & kWaiters) check_nobody_waits("Mutex");
  }

  // Parks if it has to wait. Not analysed, nor are those with a time limit: lock_slow() returns with the lock.
  void lock() TUZA_ACQUIRE() TUZA_NO_THREAD_SAFETY_ANALYSIS {
    if (!try_lock()) (void)lock_slow(WaitReason::kMutex, rt::Until{});
  }
  // Like lock(), but returns the context's cause if the context ends first, or has already ended. Parks.
  [[nodiscard]] Result<void> lock(const Context& context);
  // False: timed out. Parks.
  template <class Rep, class Period>
  [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& duration)
      TUZA_TRY_ACQUIRE(true) TUZA_NO_THREAD_SAFETY_ANALYSIS {
    if (try_lock()) return true;
    return duration > duration.zero() &&
           lock_slow(WaitReason::kMutex,
                     rt::Until{.deadline_ns = rt::deadline_after(rt::whole_ns(duration))});
  }
  template <class Duration>
  [[nodiscard]] bool try_lock_until(const std::chrono::time_point<std::chrono::steady_clock, Duration>& when)
      TUZA_TRY_ACQUIRE(true) TUZA_NO_THREAD_SAFETY_ANALYSIS {
    return try_lock() || lock_slow(WaitReason::kMutex, rt::Until{.deadline_ns = rt::point_ns(when)});
  }

  // True: the mutex was free, and the caller now holds it. A free mutex is taken even if a waiter has been
  // woken for it.
  [[nodiscard]] bool try_lock() TUZA_TRY_ACQUIRE(true) {
    std::uint32_t seen = 0;
    while ((seen & kLocked) == 0) {
      if (state_.compare_exchange_strong(seen, seen | kLocked, std::memory_order_acquire,
                                         std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }
  // Aborts if the mutex is not locked. Does not park.
  void unlock() TUZA_RELEASE() {
    std::uint32_t seen = state_.load(std::memory_order_relaxed);
    if (!frees(seen) || !state_.compare_exchange_strong(seen, seen & ~kLocked, std::memory_order_release,
                                                        std::memory_order_relaxed)) {
      unlock_slow();
    }
  }

 private:
  friend class RWMutex;
  friend class Once;
  friend struct MutexInspector;  // tests

  //   3          2       1         0
  //  | Starving | Awake | Waiters | Locked |
  //
  // Locked    held. Stays set during a handover.
  // Waiters   the queue is not empty; changed under lock_ only.
  // Awake     a caller that is awake wants the lock, and will take it or queue. unlock() then wakes
  //           nobody, so that waiters get the lock in order. A caller that sets the bit for itself, or is
  //           woken with it, clears it in the same step in which it takes the lock or queues.
  // Starving  set only while Locked and Waiters are set: unlock() hands over.
  static constexpr std::uint32_t kLocked = 1;
  static constexpr std::uint32_t kWaiters = 2;
  static constexpr std::uint32_t kAwake = 4;
  static constexpr std::uint32_t kStarving = 8;

  // Whether unlock() only has to clear the bit: the mutex is locked, and no waiter must be woken.
  static bool frees(std::uint32_t seen) {
    return (seen & (kLocked | kWaiters)) == kLocked ||
           (seen & (kLocked | kAwake | kStarving)) == (kLocked | kAwake);
  }
  // False: `until` ended the wait.
  bool lock_slow(WaitReason reason, const rt::Until& until) TUZA_TRY_ACQUIRE(true);
  struct Attempt;
  bool take_or_spin(Attempt& attempt);
  bool enqueue(rt::Waiter& place, const Attempt& attempt);
  void give_up(rt::Waiter& place);
  static void leave(rt::Waiter& place, rt::Waiter::Outcome outcome);
  void unlock_slow();
  bool announce_awake();
  rt::Waiter* next_owner();
  [[gnu::cold]] void check_nobody_waits(const char* type);

  std::atomic<std::uint32_t> state_{0};
  rt::SpinLock lock_;
  rt::WaitQueue queue_ TUZA_GUARDED_BY(lock_);
};

}  // namespace tuza
