// Entering and leaving the runtime: the guard that is the only way to a P.
//
// User code runs with rt_depth 0. Every function of the runtime that needs the M, the P or the current
// goroutine holds an Enter while it runs; nested guards only count. In user code sysmon may take the P and
// suspend the thread. Nothing outside a guard may therefore access a P or hold a lock of the runtime.
//
//   enter:  in_rt = 1; compiler barrier; if (taken) slow path      -- now the P is ours, or p() is null
//   leave:  in_rt = 0 (release)                                    -- now the P may be taken
//
// The other side, sysmon, writes `taken`, forces a full barrier on this thread, and reads in_rt. This is an
// asymmetric Dekker protocol, which keeps this side free of fences; rt/slice/handoff.h has the protocol and its
// argument. The slow path waits while sysmon decides. Once the P is gone, every enter takes the slow path, and
// p() is null: the goroutine continues without a P until its next parking call. Functions that do not park must
// work without a P. The slow path handles two other bits of `taken` as well: the child of a fork ends with a
// message, and a thread that enters after the runtime has ended sleeps for ever.
//
// A guard belongs to the goroutine, not to the thread. If the goroutine parks in between, a guard that was
// opened on one M closes on another. So m() and p() look the M up at each call, and callers must call them
// again after a park.
#pragma once

#include <tuza/sched/arch/current_m.h>
#include <tuza/sched/rt/m.h>
#include <tuza/sched/rt/testing/chaos.h>

#include <atomic>

namespace tuza::rt {

[[gnu::cold]] void enter_slow(M* m);

// Returns to user code. The caller must not access the P afterwards.
inline void leave_runtime(M* m) {
  if constexpr (chaos::kEnabled) chaos::before_leave(m);
  m->in_rt.store(0, std::memory_order_release);
}

class Enter {
 public:
  Enter() {
    M* m = current_m();
    if (m == nullptr) return;  // not an M: an external thread
    g_ = m->current;
    if (g_->rt_depth++ == 0) {
      m->in_rt.store(1, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (m->taken.load(std::memory_order_relaxed) != 0) [[unlikely]]
        enter_slow(m);
    }
  }
  ~Enter() {
    if (g_ != nullptr && --g_->rt_depth == 0) leave_runtime(current_m());
  }
  Enter(const Enter&) = delete;
  Enter& operator=(const Enter&) = delete;

  // The goroutine that opened the guard (g0 inside the scheduler); null on an external thread.
  [[nodiscard]] G* g() const { return g_; }
  // The M that the goroutine is on now; null on an external thread.
  [[nodiscard]] M* m() const { return g_ != nullptr ? current_m() : nullptr; }
  // The P of that M; null if it has none.
  [[nodiscard]] P* p() const { return g_ != nullptr ? current_m()->p : nullptr; }

 private:
  G* g_ = nullptr;
};

}  // namespace tuza::rt
