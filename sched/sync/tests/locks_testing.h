// What the tests of locks share.
#pragma once

#include <tuza/sched/external.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/tests/testing.h>

#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace tuza {

// Looks into a Mutex.
struct MutexInspector {
  static bool starving(const Mutex& mutex) { return (mutex.state_.load() & Mutex::kStarving) != 0; }
  static bool anybody_waits(const Mutex& mutex) { return (mutex.state_.load() & Mutex::kWaiters) != 0; }
  static bool untouched(const Mutex& mutex) { return mutex.state_.load() == 0; }
  static int waiters(Mutex& mutex) {
    const rt::Enter rt;
    const std::scoped_lock lock(mutex.lock_);
    int count = 0;
    for (const rt::Waiter* w = mutex.queue_.front(); w != nullptr; w = w->next) ++count;
    return count;
  }
};

namespace testing {

// Threads that are no goroutines, joined at the end. A goroutine that waits for them is not deadlocked.
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
