// Public header, part of <tuza/sync.h>.
//
// Latch: counts down to zero once, and then releases all waiters.
//
//     tuza::Latch ready(3);
//     ... three others: ready.count_down();
//     ready.wait();
//
// Ordering: everything done before count_down() is visible to every caller whose wait() returned.
// Lifetime: may be destroyed as soon as every wait() has returned and the count is zero, even while the last
// count_down() is still returning.
//
// Thread-safe; any thread, inside and outside tuza::run. wait() parks the goroutine (a thread blocks);
// count_down() and try_wait() never park. Use WaitGroup for counts that also grow.
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

  // Aborts if the count would go below zero, or if `n` is negative.
  void count_down(std::int64_t n = 1);
  // Whether the count is zero.
  [[nodiscard]] bool try_wait();
  // Returns when the count is zero. Parks.
  void wait() { (void)wait_until(rt::Until{}); }
  // Returns the context's cause if the context ends first, or has already ended. Parks.
  [[nodiscard]] Result<void> wait(const Context& context);
  void arrive_and_wait(std::int64_t n = 1) {
    count_down(n);
    wait();
  }

 private:
  bool wait_until(const rt::Until& until);
  bool give_up(rt::Waiter& place);

  rt::SpinLock lock_;
  std::int64_t count_ TUZA_GUARDED_BY(lock_);   // at zero, the last count_down() is done with the latch
  rt::WaitQueue queue_ TUZA_GUARDED_BY(lock_);  // empty once the count is zero
};

}  // namespace tuza
