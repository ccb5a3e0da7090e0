// WaitGroup: waits for goroutines to finish.
//
//     tuza::WaitGroup group;
//     for (Shard& shard : shards) group.go([&shard] { shard.compact(); });
//     group.wait();
//
// Ordering: what a goroutine did before done() is visible after the wait() that it released.
// Lifetime: may be destroyed as soon as every wait() has returned and the counter is zero, even while the
// last done() is still returning: done() does not touch the group after it has let the waiters go. Reuse: a
// new round may begin when all waits of the last one have returned.
//
// Thread-safe; any thread, inside tuza::run and outside (but go()). add() and done() never park; wait()
// blocks the G (a thread: itself).
#pragma once

#include <tuza/sched/go.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/spin_lock.h>
#include <tuza/sched/sync/wait.h>

#include <atomic>
#include <cstdint>
#include <source_location>
#include <utility>

namespace tuza {

class Context;

class WaitGroup {
 public:
  WaitGroup() = default;
  WaitGroup(const WaitGroup&) = delete;
  WaitGroup& operator=(const WaitGroup&) = delete;
  ~WaitGroup();

  // Adds `delta`, which may be negative, to the counter. Aborts if the counter goes below zero.
  void add(std::int32_t delta);
  void done() { add(-1); }

  // Returns when the counter is zero, or has been since the call. Parks.
  void wait() { (void)wait_until(rt::Until{}); }
  // The context's cause if that ended before, or had ended already: the goroutines still run then, and the
  // group must outlive them. Parks.
  [[nodiscard]] Result<void> wait(const Context& context);

  // add(1), go(function), and done() when it ends, by goexit() too.
  template <class F>
  void go(F&& function, const std::source_location& where = std::source_location::current()) {
    add(1);
    tuza::go(
        [this, function = std::forward<F>(function)]() mutable {
          struct Done {
            WaitGroup* group;
            ~Done() { group->done(); }
          } done{this};
          function();
        },
        where);
  }

 private:
  bool wait_until(const rt::Until& until);
  bool enqueue(rt::Waiter& place);
  enum class GaveUp { kYes, kTooLate, kReleaseIsComing };
  GaveUp give_up(rt::Waiter& place, rt::Waiter& again);
  void release_waiters();

  //   63          32 31            0
  //  |   counter    |   waiters    |      one word, so that done() learns with its one write whether it
  //                                       is the last and whether anybody waits. Waiters: under lock_ only
  std::atomic<std::uint64_t> state_{0};
  rt::SpinLock lock_;
  rt::WaitQueue queue_;  // guarded by lock_
};

}  // namespace tuza
