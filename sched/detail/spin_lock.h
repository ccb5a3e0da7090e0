// The lock inside channels, mutexes and similar primitives: one atomic operation to lock, a plain store to
// unlock.
//
// For sections of a few instructions that goroutines run all the time. RawMutex costs an atomic operation at
// unlock too, to learn whether a thread sleeps. Here nobody is woken: a thread that finds the lock taken
// spins briefly and then naps, 50 us at a time. Naps happen only when the kernel has taken the holder's core
// away. A goroutine that holds the lock is inside the runtime (rt/enter.h): it can neither lose its P nor be
// suspended.
//
// Thread-safe; blocks the M. The acquire of lock pairs with the release of unlock.
#pragma once

#include <tuza/sched/detail/lock_guard.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {

class TUZA_CAPABILITY("SpinLock") SpinLock {
 public:
  SpinLock() = default;
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

  void lock() TUZA_ACQUIRE() {
    if (!try_lock()) [[unlikely]]
      lock_contended();
  }
  [[nodiscard]] bool try_lock() TUZA_TRY_ACQUIRE(true) {
    return locked_.exchange(1, std::memory_order_acquire) == 0;
  }
  void unlock() TUZA_RELEASE() { locked_.store(0, std::memory_order_release); }

 private:
  void lock_contended() TUZA_ACQUIRE();

  std::atomic<std::uint32_t> locked_{0};
};

}  // namespace tuza::rt
