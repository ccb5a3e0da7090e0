// Helpers shared by the tests of locks.
#pragma once

#include <tuza/sched/external.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/rw_mutex.h>
#include <tuza/sched/tests/testing.h>

#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tuza {

// Access to the internals of a Mutex or an RWMutex.
struct MutexInspector {
  static bool starving(const Mutex& mutex) { return (mutex.state_.load() & Mutex::kStarving) != 0; }
  static bool anybody_waits(const Mutex& mutex) { return (mutex.state_.load() & Mutex::kWaiters) != 0; }
  static bool untouched(const Mutex& mutex) { return mutex.state_.load() == 0; }
  static int waiters(Mutex& mutex) { return count(mutex.lock_, mutex.queue_); }
  static bool writer_waits(const RWMutex& mutex) { return (mutex.gate_.load() & RWMutex::kWriterWaits) != 0; }
  static int writers_behind_the_first(RWMutex& mutex) { return waiters(mutex.writers_); }
  static int readers(RWMutex& mutex) { return count(mutex.lock_, mutex.readers_); }

 private:
  static int count(rt::SpinLock& guard, const rt::WaitQueue& queue) {
    const rt::Enter rt;
    const std::scoped_lock lock(guard);
    int n = 0;
    for (const rt::Waiter* w = queue.front(); w != nullptr; w = w->next) ++n;
    return n;
  }
};

namespace testing {

// Threads that are not goroutines, joined at the end. A goroutine that waits for them is not deadlocked.
class Threads {
 public:
  template <class F>
  void start(F&& body) {
    threads_.emplace_back([promise = ExternalWaker(), body = std::forward<F>(body)] { body(); });
  }
  ~Threads() {
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::vector<std::thread> threads_;
};

}  // namespace testing
}  // namespace tuza
