// Public header, part of <tuza/sync.h>.
//
// Latch: counts down to zero once, and lets everybody go who waits for that.
//
//     tuza::Latch ready(3);
//     ... three others: ready.count_down();
//     ready.wait();
//
// Ordering: what was done before count_down() is visible to everybody whose wait() returned.
// Lifetime: may be destroyed as soon as every wait() has returned and the count is zero, even while the last
// count_down() is still returning.
//
// Thread-safe; any thread, inside tuza::run and outside. wait() blocks the G (a thread: itself); count_down()
// and try_wait() never park. For counts that also grow there is WaitGroup.
#pragma once

#include <tuza/sched/detail/spin_lock.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/detail/wait.h>

#include <cstdint>

namespace tuza {

class Context;

class Latch {
 public:
  // Aborts if `count` is negative.
  explicit Latch(std::int64_t count);
  Latch(const Latch&) = delete;
  Latch& operator=(const Latch&) = delete;
  ~Latch();

  // Aborts if the count goes below zero, or `n` is negative.
  void count_down(std::int64_t n = 1);
  // Whether the count is zero.
  [[nodiscard]] bool try_wait();
  // Returns when the count is zero. Parks.
  void wait() { (void)wait_until(rt::Until{}); }
  // The context's cause if that ended before, or had ended already. Parks.
  [[nodiscard]] Result<void> wait(const Context& context);
  void arrive_and_wait(std::int64_t n = 1) {
    count_down(n);
    wait();
  }

 private:
  bool wait_until(const rt::Until& until);
  bool give_up(rt::Waiter& place);

  rt::SpinLock lock_;
  std::int64_t count_;  // guarded by lock_: who sees zero has let the last count_down() finish with the latch
  rt::WaitQueue queue_;  // guarded by lock_; empty once the count is zero
};

}  // namespace tuza
