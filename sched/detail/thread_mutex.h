// ThreadMutex: a std::mutex that Clang's thread-safety analysis knows (sched/detail/thread_annotations.h).
//
// For data that threads outside the runtime share, or that is locked for a few instructions only: it blocks the thread,
// and a goroutine must not park while it holds one. Thread-safe.
#pragma once

#include <tuza/sched/detail/lock_guard.h>

#include <condition_variable>
#include <mutex>
#include <utility>

namespace tuza {

class TUZA_CAPABILITY("ThreadMutex") ThreadMutex {
 public:
  void lock() TUZA_ACQUIRE() { mutex_.lock(); }
  bool try_lock() TUZA_TRY_ACQUIRE(true) { return mutex_.try_lock(); }
  void unlock() TUZA_RELEASE() { mutex_.unlock(); }

  // As the functions of `changed`. The mutex is released during the wait only, and held while `condition` runs.
  template <class Condition>
  void wait(std::condition_variable& changed, Condition condition) TUZA_REQUIRES(this) {
    std::unique_lock held(mutex_, std::adopt_lock);
    changed.wait(held, std::move(condition));
    held.release();
  }
  template <class Duration, class Condition>
  bool wait_for(std::condition_variable& changed, const Duration& limit, Condition condition)
      TUZA_REQUIRES(this) {
    std::unique_lock held(mutex_, std::adopt_lock);
    const bool holds = changed.wait_for(held, limit, std::move(condition));
    held.release();
    return holds;
  }

 private:
  std::mutex mutex_;
};

}  // namespace tuza
