// Public header, part of <tuza/sync.h>.
//
// Semaphore: permits that goroutines and threads acquire and release, one or several at a time.
//
//     tuza::Semaphore megabytes(100);
//     megabytes.acquire(size);  ...  megabytes.release(size);
//     if (megabytes.acquire(context, size)) ...                    // gives up when the context ends
//
// Ordering: everything done before release() is visible after the acquire() that got its permits.
// Fair: first come, first served. Callers that want few permits do not overtake a waiter that wants many;
// they wait behind it, even if there are permits for them.
// Lifetime: may be destroyed as soon as nobody waits, even while the release() that served the last waiter
// is still returning.
//
// There is no upper limit: releasing more than was acquired adds permits, so a semaphore may begin with none
// and count events. An acquire() of more permits than there will ever be waits for ever.
//
// Thread-safe; any thread, inside and outside tuza::run. acquire() parks the goroutine (a thread blocks) if
// it has to wait; try_acquire() and release() never park.
#pragma once

#include <tuza/sched/detail/spin_lock.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/detail/wait.h>

#include <cstdint>

namespace tuza {

namespace rt {
class WakeList;
}
class Context;

class Semaphore {
 public:
  // Aborts if `permits` is negative, as do the calls below.
  explicit Semaphore(std::int64_t permits) : permits_(not_negative(permits)) {}
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;
  ~Semaphore();

  // Parks if it has to wait.
  void acquire(std::int64_t permits = 1) { (void)acquire_until(permits, rt::Until{}); }
  // Returns the context's cause if the context ends first, or has already ended; no permits are taken then.
  // Parks.
  [[nodiscard]] Result<void> acquire(const Context& context, std::int64_t permits = 1);
  // False: there are too few permits, or others wait.
  [[nodiscard]] bool try_acquire(std::int64_t permits = 1);
  // Aborts if there would be more than 2^63 - 1 permits.
  void release(std::int64_t permits = 1);

 private:
  static std::int64_t not_negative(std::int64_t permits);
  bool take(std::int64_t permits) TUZA_REQUIRES(lock_);
  bool acquire_until(std::int64_t permits, const rt::Until& until);
  void serve(rt::WakeList& served) TUZA_REQUIRES(lock_);
  void give_up(rt::Waiter& place);

  rt::SpinLock lock_;
  std::int64_t permits_ TUZA_GUARDED_BY(lock_);  // fewer than the first waiter wants
  rt::WaitQueue queue_ TUZA_GUARDED_BY(lock_);   // Waiter::slot: how many permits it wants
};

}  // namespace tuza
