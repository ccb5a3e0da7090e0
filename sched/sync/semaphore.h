// Semaphore: a number of permits that goroutines take and give back.
//
//     tuza::Semaphore slots(100);
//     slots.acquire();  ...  slots.release();
//
// Ordering: what was done before release() is visible after the acquire() that got the permit.
// Fair: permits go to the goroutine that has waited longest; nobody overtakes those that wait.
//
// Thread-safe. acquire() parks the goroutine; try_acquire() and release() never park, and any thread may call
// them.
#pragma once

#include <tuza/sched/g_list.h>
#include <tuza/sched/raw_mutex.h>

#include <cstdint>

namespace tuza {

class Semaphore {
 public:
  explicit Semaphore(std::int64_t permits) : permits_(permits) {}
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;
  ~Semaphore();

  void acquire();
  [[nodiscard]] bool try_acquire();
  void release();

 private:
  static bool commit_acquire(rt::G* g, void* self);

  rt::RawMutex mutex_;
  std::int64_t permits_;  // guarded by mutex_
  rt::GList waiters_;     // guarded by mutex_; empty while there are permits
};

}  // namespace tuza
