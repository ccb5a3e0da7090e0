// Access control for a descriptor: reference count, read lock, write lock and closed mark in one word.
//
// The number of a descriptor must not be returned to the system while a goroutine is in a system call with
// it: the number may then refer to another file. Each user holds a reference; close() forbids new references,
// and the user that drops the last reference closes the number. Reads exclude each other, and so do writes,
// so that two goroutines that write to one connection do not interleave their bytes.
//
//   63        43 42        23 22         3    2      1      0
//  | writers    | readers    | references | write | read  | closed |
//  |   waiting  |   waiting  |            | locked| locked|        |
//
// One compare-and-swap takes the lock and the reference; one compare-and-swap releases both.
//
// Thread-safe. lock() parks while another goroutine reads (writes). Source: Go's internal/poll/fd_mutex.go.
#pragma once

#include <tuza/sched/sync/semaphore.h>

#include <atomic>
#include <cstdint>

namespace tuza {
class Context;
}

namespace tuza::net {

class FdMutex {
 public:
  enum class Side : std::uint8_t { kRead, kWrite };

  // Takes a reference without a lock. False once closed.
  [[nodiscard]] bool acquire();
  // Takes a reference and the lock of one side; parks while another goroutine holds the lock. False once
  // closed. The exchange is also a release: a thread that is lost in a call when the runtime ends never
  // unlocks, and a later close must be ordered after everything that thread has read on its way here. `ctx` may be null;
  // its end ends the wait: false, too.
  [[nodiscard]] bool lock(Side side, const Context* ctx = nullptr) {
    std::uint64_t idle = kIdle;  // open and unused: the usual case
    if (state_.compare_exchange_strong(idle, kIdle + kReference + lock_bit(side), std::memory_order_acq_rel,
                                       std::memory_order_relaxed)) {
      return true;
    }
    return lock_slow(side, ctx);
  }

  // Release what acquire() and lock() took. True: this was the last reference of a closed descriptor, and the
  // caller must close the number now.
  [[nodiscard]] bool release();
  [[nodiscard]] bool unlock(Side side) {
    std::uint64_t alone = kIdle + kReference + lock_bit(side);
    if (state_.compare_exchange_strong(alone, kIdle, std::memory_order_release, std::memory_order_relaxed)) {
      return false;
    }
    return unlock_slow(side);
  }

  // Forbids new references and wakes the goroutines that wait for a lock; the caller then holds a reference.
  // False if already closed.
  [[nodiscard]] bool close();

  [[nodiscard]] bool closed() const { return (state_.load(std::memory_order_seq_cst) & kClosed) != 0; }

  // Prepares this memory for its next use, when there are no references.
  void reset() { state_.store(kIdle, std::memory_order_release); }

 private:
  static constexpr std::uint64_t kIdle = 0;
  static constexpr std::uint64_t kClosed = 1;
  static constexpr std::uint64_t kReference = std::uint64_t{1} << 3;
  static constexpr std::uint64_t kReferenceMask = ((std::uint64_t{1} << 20) - 1) << 3;
  static constexpr std::uint64_t kWaiterMax = (std::uint64_t{1} << 20) - 1;

  static std::uint64_t lock_bit(Side side) { return side == Side::kRead ? 2 : 4; }
  static unsigned waiter_shift(Side side) { return side == Side::kRead ? 23 : 43; }
  static std::uint64_t waiter(Side side) { return std::uint64_t{1} << waiter_shift(side); }
  static std::uint64_t waiters(std::uint64_t state, Side side) {
    return (state >> waiter_shift(side)) & kWaiterMax;
  }
  Semaphore& semaphore(Side side) { return side == Side::kRead ? readers_ : writers_; }

  // Aborts if one more reference would overflow into the count of waiters.
  static void check_room(std::uint64_t state);
  bool lock_slow(Side side, const Context* ctx);
  bool leave(Side side);
  bool unlock_slow(Side side);

  std::atomic<std::uint64_t> state_{kIdle};
  Semaphore readers_{0};  // goroutines that wait for the read lock
  Semaphore writers_{0};
};

}  // namespace tuza::net
