// Public header, part of <tuza/sync.h>.
//
// Cond: a condition variable; a goroutine waits until another one signals that a condition may have changed.
//
//     std::unique_lock lock(mutex);
//     while (queue.empty()) changed.wait(lock);                    // or: changed.wait(lock, [&] { ... })
//
//     { const std::scoped_lock lock(mutex); queue.push(x); }
//     changed.signal();
//
// wait() unlocks the lock and starts to wait in one step: no signal() after the unlock is missed. wait()
// never returns without a signal of its own. The condition may be false again by then all the same, so test
// it again. signal() wakes the longest waiter.
//
// The lock may be anything with lock() and unlock(): Mutex, RWMutex, std::unique_lock or std::shared_lock of
// them. Different waits may use different locks, but this is of no use.
//
// Ordering: everything done before signal() is visible to the waiter that it woke; the lock orders the rest.
// Lifetime: may be destroyed when all waiters have been signalled, even if their waits have not yet
// returned. Waits with a context, however, must have returned.
//
// Thread-safe; any thread, inside and outside tuza::run. wait() parks the goroutine (a thread blocks).
// signal() and broadcast() never park, whether the lock is held or not. Source: Go's sync.Cond (tickets in
// order of waiting).
#pragma once

#include <tuza/sched/detail/spin_lock.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/detail/wait.h>

#include <concepts>
#include <optional>

namespace tuza {

class Context;

// wait() is not analysed: it unlocks a lock that its caller holds, and locks it again.
class Cond {
 public:
  Cond() = default;
  Cond(const Cond&) = delete;
  Cond& operator=(const Cond&) = delete;
  ~Cond();

  // Unlocks, waits, and locks again. If lock.unlock() throws, wait() throws the same exception, and leaves
  // the lock as unlock() left it. Parks.
  template <class Lock>
  void wait(Lock& lock) TUZA_NO_THREAD_SAFETY_ANALYSIS {
    Place place(*this);
    lock.unlock();
    const Relock<Lock> relock(lock);
    (void)place.block(rt::Until{});
  }
  // Waits until `condition()` holds. The condition is evaluated with the lock held.
  template <class Lock, std::predicate Condition>
  void wait(Lock& lock, Condition condition) {
    while (!condition()) wait(lock);
  }

  // Returns the context's cause if the context ends before a signal comes, or has already ended. The lock is
  // held again in this case, too. Parks.
  template <class Lock>
  [[nodiscard]] Result<void> wait(const Context& context, Lock& lock) TUZA_NO_THREAD_SAFETY_ANALYSIS {
    Place place(*this);
    lock.unlock();
    const Relock<Lock> relock(lock);
    return place.block(context);
  }
  // Waits until `condition()` holds. Returns the cause if the context ends first and the condition does not
  // hold.
  template <class Lock, std::predicate Condition>
  [[nodiscard]] Result<void> wait(const Context& context, Lock& lock, Condition condition) {
    while (!condition()) {
      if (Result<void> signalled = wait(context, lock); !signalled && !condition()) return signalled;
    }
    return {};
  }

  // Wakes the longest waiter, if there is one. notify_one in C++ terms.
  void signal();
  // Wakes all waiters. notify_all in C++ terms.
  void broadcast();
  void notify_one() { signal(); }
  void notify_all() { broadcast(); }

 private:
  // One wait. It is in the queue from its construction on, which is before the lock is unlocked.
  class Place {
   public:
    explicit Place(Cond& cond);
    ~Place();  // if unlock() threw: leaves the queue; a signal that came goes to the next waiter
    bool block(const rt::Until& until);
    [[nodiscard]] Result<void> block(const Context& context);

   private:
    Cond& cond_;
    rt::Wait wait_;
    rt::Waiter waiter_;
    // On record while user code unlocks; block() has a record of its own.
    rt::PendingWait pending_{rt::Wait::kWithdrawal, &wait_};
    std::optional<rt::PendingWaitScope> on_record_;
    bool blocked_ = false;
  };
  template <class Lock>
  struct Relock {
    explicit Relock(Lock& given_back) : lock(given_back) {}
    // The caller relies on holding the lock: if it cannot be locked again, the program cannot continue.
    ~Relock() { lock.lock(); }
    Lock& lock;
  };

  bool leave(rt::Waiter& place);

  rt::SpinLock lock_;
  rt::WaitQueue queue_ TUZA_GUARDED_BY(lock_);
};

}  // namespace tuza
