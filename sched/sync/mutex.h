// Mutex: a lock for goroutines. It parks the goroutine where std::mutex would block the thread.
//
//     tuza::Mutex mutex;
//     { const std::scoped_lock lock(mutex); table[key] = value; }
//
// It may be held across parking calls, and unlocked by another goroutine or thread than the one that
// locked it. Ordering: what was done before unlock() is visible after the next lock(). Fair: unlock() hands
// the lock to the goroutine that has waited longest.
//
// Thread-safe. lock() parks the goroutine; try_lock() and unlock() never park, and any thread may call them.
#pragma once

#include <tuza/sched/g_list.h>
#include <tuza/sched/raw_mutex.h>

#include <atomic>
#include <cstdint>

namespace tuza {

class Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  ~Mutex();

  void lock() {
    if (!try_lock()) lock_contended();
  }
  [[nodiscard]] bool try_lock() {
    std::uint32_t free = kFree;
    return state_.compare_exchange_strong(free, kLocked, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  // Aborts if the mutex is not locked.
  void unlock() {
    std::uint32_t locked = kLocked;
    if (!state_.compare_exchange_strong(locked, kFree, std::memory_order_release,
                                        std::memory_order_relaxed)) {
      unlock_contended();
    }
  }

 private:
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kLocked = 1;
  static constexpr std::uint32_t kLockedWithWaiters = 2;  // changed under mutex_ only

  void lock_contended();
  void unlock_contended();
  static bool commit_lock(rt::G* g, void* self);

  std::atomic<std::uint32_t> state_{kFree};
  rt::RawMutex mutex_;
  rt::GList waiters_;  // guarded by mutex_; not empty exactly when state_ is kLockedWithWaiters
};

}  // namespace tuza
