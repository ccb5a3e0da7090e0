// The lock inside primitives: it blocks the M, takes four bytes, and needs no libc.
//
// For critical sections of a few instructions: queues, free lists, timer heaps. Never held across a park, a
// switch, an allocation or a callback, except that the commit of a park may release it. A goroutine that holds
// one is inside the runtime (rt/enter.h): it can neither lose its P nor be suspended. Programs use tuza::Mutex,
// which parks.
//
// Protocol: U. Drepper, "Futexes Are Tricky" (2011), mutex2. State 0: free, 1: locked, 2: locked, and threads
// may sleep. The acquire of lock() pairs with the release of unlock().
#pragma once

#include <tuza/sched/detail/lock_guard.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {

class TUZA_CAPABILITY("RawMutex") RawMutex {
 public:
  RawMutex() = default;
  RawMutex(const RawMutex&) = delete;
  RawMutex& operator=(const RawMutex&) = delete;

  bool try_lock() TUZA_TRY_ACQUIRE(true) {
    std::uint32_t free = 0;
    return state_.compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void lock() TUZA_ACQUIRE() {
    if (!try_lock()) lock_contended();
  }
  void unlock() TUZA_RELEASE() {
    if (state_.exchange(0, std::memory_order_release) == 2) wake_one_waiter();
  }

 private:
  void lock_contended() TUZA_ACQUIRE();
  void wake_one_waiter();

  std::atomic<std::uint32_t> state_{0};
};

}  // namespace tuza::rt
