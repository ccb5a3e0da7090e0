#include <tuza/sched/rt/base/raw_mutex.h>

#include <tuza/sched/arch/cpu_relax.h>
#include <tuza/sched/rt/base/fork.h>
#include <tuza/sched/rt/base/futex.h>

namespace tuza::rt {

// Not analysed: the lock is a word, taken by an exchange.
void RawMutex::lock_contended() TUZA_NO_THREAD_SAFETY_ANALYSIS {
  // The holder unlocks within nanoseconds, unless the kernel took its core: spin briefly, then sleep.
  for (int i = 0; i < 40; ++i) {
    cpu_relax();
    if (state_.load(std::memory_order_relaxed) == 0 && try_lock()) return;
  }
  if (is_forked_child()) return;  // as in SpinLock: the holder is a thread of the parent
  while (state_.exchange(2, std::memory_order_acquire) != 0) futex_wait(state_, 2);
}

void RawMutex::wake_one_waiter() { futex_wake(state_, 1); }

}  // namespace tuza::rt
