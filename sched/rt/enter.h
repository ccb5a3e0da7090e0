// Entering and leaving the runtime: the guard through which alone a P can be reached.
//
// User code runs with rt_depth 0. Every function of the runtime that needs the M, the P or the current
// goroutine opens an Enter for its length; nested ones only count. In user code sysmon may take the P away
// and suspend the thread, so nothing outside a guard may touch a P or hold a lock of the runtime.
//
//   enter:  in_rt = 1; compiler barrier; if (taken) slow path      -- now p() is mine, or null
//   leave:  in_rt = 0 (release)                                    -- now it may be taken
//
// The other side, sysmon, writes `taken`, forces a full barrier on this thread, and reads in_rt: the
// asymmetric Dekker that keeps this side free of fences. The protocol and its argument are in rt/slice/handoff.h.
// The slow path waits while sysmon decides. Once the P is gone every enter takes that path and p() is null: a
// goroutine goes on without a P until it comes to a parking call. Functions that do not park must manage
// without one. Two other bits of `taken` end here: in the child of a fork the process ends with a message,
// and a thread that comes back after the runtime has ended sleeps for ever.
//
// A guard belongs to the goroutine, not to the thread: opened on one M, it may close on another, if the
// goroutine parked in between. m() and p() are therefore looked up afresh, and must be again after a park.
#pragma once

#include <tuza/sched/arch/current_m.h>
#include <tuza/sched/rt/m.h>
#include <tuza/sched/rt/testing/chaos.h>

#include <atomic>

namespace tuza::rt {

[[gnu::cold]] void enter_slow(M* m);

// Back to user code. The P must not be touched after it.
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
  // The M the goroutine is on now; null on an external thread.
  [[nodiscard]] M* m() const { return g_ != nullptr ? current_m() : nullptr; }
  // The P of that M; null if it has none.
  [[nodiscard]] P* p() const { return g_ != nullptr ? current_m()->p : nullptr; }

 private:
  G* g_ = nullptr;
};

}  // namespace tuza::rt
