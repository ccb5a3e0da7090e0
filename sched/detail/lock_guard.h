// Scoped locks that Clang's thread-safety analysis understands (sched/detail/thread_annotations.h), for every type with
// lock(), try_lock() and unlock().
//
//     const LockGuard lock(mutex_);             // like std::scoped_lock of one lock
//     RelockableGuard lock(mutex_);             // like std::unique_lock: may be unlocked and locked again meanwhile
//     const LockBoth both(a.mutex_, b.mutex_);  // like std::scoped_lock of two: in either order, without a deadlock
//
// Each lives in one scope. Blocks or parks as the lock does.
#pragma once

#include <tuza/sched/detail/thread_annotations.h>

#include <mutex>

namespace tuza {

template <class Lock>
class [[nodiscard]] TUZA_SCOPED_CAPABILITY LockGuard {
 public:
  explicit LockGuard(Lock& lock) TUZA_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
  // The caller has locked it.
  LockGuard(Lock& lock, std::adopt_lock_t) TUZA_REQUIRES(lock) : lock_(lock) {}
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;
  ~LockGuard() TUZA_RELEASE() { lock_.unlock(); }

 private:
  Lock& lock_;
};

template <class Lock>
class [[nodiscard]] TUZA_SCOPED_CAPABILITY RelockableGuard {
 public:
  explicit RelockableGuard(Lock& lock) TUZA_ACQUIRE(lock) : lock_(lock) { lock_.lock(); }
  RelockableGuard(const RelockableGuard&) = delete;
  RelockableGuard& operator=(const RelockableGuard&) = delete;
  ~RelockableGuard() TUZA_RELEASE() {
    if (held_) lock_.unlock();
  }

  // The bodies are not analysed: to the analysis the guard is what is locked here, not lock_.
  void unlock() TUZA_RELEASE() TUZA_NO_THREAD_SAFETY_ANALYSIS {
    held_ = false;
    lock_.unlock();
  }
  void lock() TUZA_ACQUIRE() TUZA_NO_THREAD_SAFETY_ANALYSIS {
    lock_.lock();
    held_ = true;
  }

 private:
  Lock& lock_;
  bool held_ = true;
};

template <class Lock>
class [[nodiscard]] TUZA_SCOPED_CAPABILITY LockBoth {
 public:
  LockBoth(Lock& first, Lock& second) TUZA_ACQUIRE(first, second) : both_(first, second) {}
  LockBoth(const LockBoth&) = delete;
  LockBoth& operator=(const LockBoth&) = delete;
  ~LockBoth() TUZA_RELEASE() = default;

 private:
  std::scoped_lock<Lock, Lock> both_;
};

// Like std::lock(): whatever the order, without a deadlock.
template <class Lock>
void lock_both(Lock& first, Lock& second) TUZA_ACQUIRE(first, second) TUZA_NO_THREAD_SAFETY_ANALYSIS {
  std::lock(first, second);
}

}  // namespace tuza
