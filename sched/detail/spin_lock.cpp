#include <tuza/sched/detail/spin_lock.h>

#include <tuza/sched/arch/cpu_relax.h>
#include <tuza/sched/rt/base/fork.h>
#include <tuza/sched/rt/base/futex.h>

namespace tuza::rt {

// Not analysed: in a forked child it takes the lock without try_lock().
void SpinLock::lock_contended() TUZA_NO_THREAD_SAFETY_ANALYSIS {
  constexpr int kSpins = 100;
  constexpr std::int64_t kNapNs = 50'000;
  for (;;) {
    for (int i = 0; i < kSpins; ++i) {
      if (locked_.load(std::memory_order_relaxed) == 0 && try_lock()) return;
      cpu_relax();
    }
    if (is_forked_child()) return;  // the holder is a thread of the parent: the lock is ours now
    futex_wait(locked_, 1, kNapNs);
  }
}

}  // namespace tuza::rt
