// Public header, part of <tuza/sync.h>.
//
// Cond: waits until another goroutine says that something may have changed.
//
//     std::unique_lock lock(mutex);
//     while (queue.empty()) changed.wait(lock);                    // or: changed.wait(lock, [&] { ... })
//
//     { const std::scoped_lock lock(mutex); queue.push(x); }
//     changed.signal();
//
// wait() gives the lock back and waits in one step: a signal() after the lock was free is not missed. It
// never returns without a signal for it; the condition may be false again all the same, so ask again.
// signal() wakes the one that has waited longest.
//
// The lock is anything with lock() and unlock(): Mutex, RWMutex, std::unique_lock or std::shared_lock of
// them. Another one at each wait is allowed, and of no use.
//
// Ordering: what was done before signal() is visible to the one that it woke; the lock gives the rest.
// Lifetime: may be destroyed when all who wait have been signalled, though their waits have not returned; but
// waits with a context must have returned.
//
// Thread-safe; any thread, inside tuza::run and outside. wait() blocks the G (a thread: itself); signal() and
// broadcast() never park, with the lock or without. Source: Go's sync.Cond (tickets in order of waiting).
#pragma once

#include <tuza/sched/detail/spin_lock.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/detail/wait.h>

#include <concepts>
#include <optional>

namespace tuza {

class Context;

class Cond {
 public:
  Cond() = default;
  Cond(const Cond&) = delete;
  Cond& operator=(const Cond&) = delete;
  ~Cond();

  // Unlocks, waits, locks again, also when it throws what lock.unlock() threw. Parks.
  template <class Lock>
  void wait(Lock& lock) {
    Place place(*this);
    lock.unlock();
    const Relock<Lock> relock(lock);
    (void)place.block(rt::Until{});
  }
  // Until `condition()` holds, which is asked with the lock held.
  template <class Lock, std::predicate Condition>
  void wait(Lock& lock, Condition condition) {
    while (!condition()) wait(lock);
  }

  // The context's cause if that ended before a signal came, or had ended already. The lock is held again
  // then, too. Parks.
  template <class Lock>
  [[nodiscard]] Result<void> wait(const Context& context, Lock& lock) {
    Place place(*this);
    lock.unlock();
    const Relock<Lock> relock(lock);
    return place.block(context);
  }
  // Until `condition()` holds; the cause if the context ended before and it does not.
  template <class Lock, std::predicate Condition>
  [[nodiscard]] Result<void> wait(const Context& context, Lock& lock, Condition condition) {
    while (!condition()) {
      if (Result<void> signalled = wait(context, lock); !signalled && !condition()) return signalled;
    }
    return {};
  }

  // Wakes the one that has waited longest, if anybody waits. notify_one, in C++'s words.
  void signal();
  // Wakes all who wait. notify_all.
  void broadcast();
  void notify_one() { signal(); }
  void notify_all() { broadcast(); }

 private:
  // One wait: queued from its construction on, which is before the lock is given back.
  class Place {
   public:
    explicit Place(Cond& cond);
    ~Place();  // unlock() has thrown: leaves; a signal that came goes to the next
    bool block(const rt::Until& until);
    Result<void> block(const Context& context);

   private:
    Cond& cond_;
    rt::Wait wait_;
    rt::Waiter waiter_;
    // While user code unlocks: block() has a record of its own.
    rt::PendingWait pending_{rt::Wait::kWithdrawal, &wait_};
    std::optional<rt::PendingWaitScope> on_record_;
    bool blocked_ = false;
  };
  template <class Lock>
  struct Relock {
    explicit Relock(Lock& given_back) : lock(given_back) {}
    // The lock is what the caller relies on: if it cannot be had again, nothing can.
    ~Relock() { lock.lock(); }
    Lock& lock;
  };

  bool leave(rt::Waiter& place);

  rt::SpinLock lock_;
  rt::WaitQueue queue_;  // guarded by lock_
};

}  // namespace tuza
