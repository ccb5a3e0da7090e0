#include <tuza/netpoll/poll/fd_mutex.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/sync/context.h>

namespace tuza::net {

void FdMutex::check_room(std::uint64_t state) {
  if ((state & kReferenceMask) == kReferenceMask) rt::fatal("too many users of one descriptor");
}

bool FdMutex::acquire() {
  std::uint64_t state = state_.load(std::memory_order_relaxed);
  do {
    if ((state & kClosed) != 0) return false;
    check_room(state);
  } while (!state_.compare_exchange_weak(state, state + kReference, std::memory_order_acq_rel,
                                         std::memory_order_relaxed));
  return true;
}

bool FdMutex::release() {
  const std::uint64_t before = state_.fetch_sub(kReference, std::memory_order_acq_rel);
  if ((before & kReferenceMask) == 0) rt::fatal("a descriptor was released too many times");
  return (before & kClosed) != 0 && (before & kReferenceMask) == kReference;
}

// For a waiter whose context has ended, and that got no permit. Waiters have no names: there are as many as are counted,
// and one for each permit that is not taken yet. False: none is counted, so that the last permit was for this waiter, which
// has taken it and has its turn.
bool FdMutex::leave(Side side) {
  std::uint64_t state = state_.load(std::memory_order_relaxed);
  do {
    if (waiters(state, side) == 0) {
      semaphore(side).acquire();
      return false;
    }
  } while (!state_.compare_exchange_weak(state, state - waiter(side), std::memory_order_acq_rel,
                                         std::memory_order_relaxed));
  return true;
}

bool FdMutex::lock_slow(Side side, const Context* ctx) {
  std::uint64_t state = state_.load(std::memory_order_relaxed);
  for (;;) {
    if ((state & kClosed) != 0) return false;
    const bool locked = (state & lock_bit(side)) != 0;
    if (locked && ctx != nullptr && ctx->done()) return false;
    if (locked && waiters(state, side) == kWaiterMax) rt::fatal("too many waiters for one descriptor");
    if (!locked) check_room(state);
    const std::uint64_t wanted = locked ? state + waiter(side) : state + kReference + lock_bit(side);
    if (!state_.compare_exchange_weak(state, wanted, std::memory_order_acq_rel, std::memory_order_relaxed)) {
      continue;
    }
    if (!locked) return true;
    // The unlocking or closing thread removes this waiter from the count, and then releases the semaphore
    // once.
    if (ctx == nullptr || ctx->event() == nullptr) {
      semaphore(side).acquire();
    } else if (!semaphore(side).acquire(*ctx) && leave(side)) {
      return false;
    }
    state = state_.load(std::memory_order_relaxed);
  }
}

bool FdMutex::unlock_slow(Side side) {
  std::uint64_t state = state_.load(std::memory_order_relaxed);
  std::uint64_t wanted = 0;
  do {
    if ((state & lock_bit(side)) == 0) rt::fatal("a descriptor was unlocked too many times");
    wanted = state - lock_bit(side) - kReference;
    if (waiters(state, side) > 0) wanted -= waiter(side);
  } while (
      !state_.compare_exchange_weak(state, wanted, std::memory_order_acq_rel, std::memory_order_relaxed));
  if (waiters(state, side) > 0) semaphore(side).release();
  return (wanted & kClosed) != 0 && (wanted & kReferenceMask) == 0;
}

bool FdMutex::close() {
  std::uint64_t state = state_.load(std::memory_order_relaxed);
  std::uint64_t wanted = 0;
  do {
    if ((state & kClosed) != 0) return false;
    check_room(state);
    wanted = (state | kClosed) + kReference;
    wanted -= waiters(state, Side::kRead) * waiter(Side::kRead);
    wanted -= waiters(state, Side::kWrite) * waiter(Side::kWrite);
    // seq_cst: a waiter announces itself and then checks whether the descriptor is closed (WaitSlot); close()
    // sets the mark and then looks for announced waiters.
  } while (
      !state_.compare_exchange_weak(state, wanted, std::memory_order_seq_cst, std::memory_order_relaxed));
  for (const Side side : {Side::kRead, Side::kWrite}) {
    for (std::uint64_t n = waiters(state, side); n > 0; --n) semaphore(side).release();
  }
  return true;
}

}  // namespace tuza::net
