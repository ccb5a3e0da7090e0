// The lock inside channels, mutexes and the like: one atomic operation to lock it, a plain store to unlock
// it.
//
// For sections of a few instructions that goroutines run all the time. RawMutex costs an atomic operation at
// unlock too, to learn whether somebody sleeps; here nobody is woken: who finds the lock taken spins for a
// moment and then naps, 50 us at a time, which happens only when the kernel has taken the holder's core away.
// A goroutine that holds one is inside the runtime (rt/enter.h): it can neither lose its P nor be suspended.
//
// Thread-safe; blocks the M. lock's acquire pairs with unlock's release.
#pragma once

#include <atomic>
#include <cstdint>

namespace tuza::rt {

class SpinLock {
 public:
  SpinLock() = default;
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

  void lock() {
    if (!try_lock()) [[unlikely]]
      lock_contended();
  }
  [[nodiscard]] bool try_lock() { return locked_.exchange(1, std::memory_order_acquire) == 0; }
  void unlock() { locked_.store(0, std::memory_order_release); }

 private:
  void lock_contended();

  std::atomic<std::uint32_t> locked_{0};
};

}  // namespace tuza::rt
