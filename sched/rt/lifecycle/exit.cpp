#include <tuza/sched/rt/lifecycle/exit.h>

#include <tuza/sched/arch/thread_end.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/fork.h>
#include <tuza/sched/rt/base/futex.h>
#include <tuza/sched/rt/idle/machine_thread.h>
#include <tuza/sched/rt/lifecycle/lifecycle.h>
#include <tuza/sched/rt/sched.h>

#include <cstdlib>

namespace tuza::rt {
namespace {

// Another thread is already ending the runtime: the main goroutine has returned, or somebody else has called
// exit(). The end is over when active() returns null.
void wait_for_other_end() {
  constexpr std::int64_t kNapNs = 1'000'000;
  constexpr int kNapsMax = 5000;
  std::atomic<std::uint32_t> nobody_wakes{0};
  for (int i = 0; i < kNapsMax && active() != nullptr; ++i) futex_wait(nobody_wakes, 0, kNapNs);
}

void end_before_exit(Sched& sched) {
  if (!claim_end(sched)) return wait_for_other_end();
  stop_runtime(sched);
  end_runtime(sched, Afterwards::kKeep);
}

void at_exit() {
  if (current_m() != nullptr) return thread_ends();  // this M gets no notice (allow_programs())
  if (Sched* sched = active(); sched != nullptr) end_before_exit(*sched);
}

// The thread stops being an M, although it stays on the stack of a goroutine; this stack must not be unmapped.
void leave_to_exit(M& m) {
  Sched& sched = *m.sched;
  sched.exiting.store(true, std::memory_order_release);
  m_becomes_foreign(&m);
  set_current_m(nullptr);
  {
    const LockGuard lock(sched.ms_mutex);
    m.has_thread = false;  // a thread that is in exit() must not be joined
  }
  m.thread_id = 0;
  if (sched.ms_live.fetch_sub(1, std::memory_order_acq_rel) == 1) futex_wake(sched.ms_live, 1);
}

}  // namespace

void watch_exit() {
  static const int registered = std::atexit(&at_exit);
  if (registered != 0) fatal("atexit() failed");
}

void thread_ends() {
  M* m = current_m();
  if (m == nullptr) return;
  if (is_forked_child()) return set_current_m(nullptr);  // destructors find no runtime, as outside tuza::run
  // exit() destroys thread_locals on the stack on which it was called; pthread_exit() destroys them when all
  // frames of the thread are gone.
  if (on_own_stack(*m)) fatal("pthread_exit() was called on a goroutine");
  Sched& sched = *m->sched;
  leave_to_exit(*m);
  end_before_exit(sched);
}

}  // namespace tuza::rt
