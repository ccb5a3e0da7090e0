// The callback that a compiler inserts into code built with tuza::checkpoints: a parking point in every loop.
//
// The compiler inserts a call at the start of each basic block, so that every loop and every function
// contains one. A goroutine that has used up its slice, or lost its P, parks in that call, at once and on its
// own thread: this needs no signal, and no thread per goroutine, however many goroutines compute.
//
// GCC and Clang call a plain function (-fsanitize-coverage=trace-pc) and save around the call what the ABI
// lets a function change; the switch keeps the rest. As far as the compiler knows, the program can therefore
// safely be left here. may_park() checks what the compiler does not know. What cannot be checked is the
// contract of instrumented code (docs/guide/libraries.md).
//
// Rejected: -finstrument-functions and -pg -mfentry instrument functions only, so a loop without calls never
// reaches a checkpoint. Checkpoints at back edges only, or an inline check, need a compiler plugin, one for
// each compiler release.
//
// This file is not instrumented itself, like the rest of Tuza, and is compiled without a frame pointer.
#include <signal.h>
#include <tuza/sched/arch/current_m.h>
#include <tuza/sched/arch/last_error.h>
#include <tuza/sched/arch/thread_id.h>
#include <tuza/sched/rt/m.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/rt/slice/slices.h>
#include <tuza/sched/rt/slice/thread_signal.h>

#include <algorithm>
#include <cstdint>

namespace tuza::rt {
namespace {

// Without inlining, the runtime calls templates between reading its M and using it. The program may provide
// instrumented copies of these templates, and after a park there the runtime would use another thread's M.
// Even the callback below would call itself. The callback therefore does nothing in such builds.
#if defined(__OPTIMIZE__)
constexpr bool kOptimised = true;
#else
constexpr bool kOptimised = false;
#endif

// kEnded, kForked: there is nothing to yield to, and a goroutine that others wait for must make progress.
// kTaking is decided soon; kFence alone means nothing.
bool is_due(const M& m) {
  const std::uint32_t taken = m.taken.load(std::memory_order_relaxed);
  if ((taken & (taken::kEnded | taken::kForked)) != 0) return false;
  return (taken & taken::kGone) != 0 || m.yield_asked.load(std::memory_order_relaxed) != 0;
}

// In a signal handler the signal is blocked (unless it was installed with SA_NODEFER), and sigreturn belongs
// to the thread. A child of vfork shares its parent's memory, and so looks like its parent's M. (This check
// makes two system calls; the checks before it are cheap.)
bool is_thread_as_usual(const M& m) {
  if (own_thread_id() != m.thread_id) return false;
  sigset_t blocked;
  if (pthread_sigmask(SIG_BLOCK, nullptr, &blocked) != 0) return true;
  const int end = std::max<int>(NSIG, rt::real_time_signals().last + 1);  // FreeBSD's NSIG is 32
  for (int signal = 1; signal < end; ++signal) {
    if (sigismember(&blocked, signal) == 1 && sigismember(&m.sched->signal_mask, signal) != 1) return false;
  }
  return true;
}

// Whether the goroutine is in its own code, on its own stack, and may change its thread.
bool may_park(const M& m) {
  const G& g = *m.current;
  // in_rt is checked too: the templates of the standard library that the runtime uses may be the instrumented
  // copies, and rt_depth is already 0 in the last steps of ~Enter.
  if (g.rt_depth != 0 || m.in_rt.load(std::memory_order_relaxed) != 0) return false;
  // In a blocking call the goroutine has given its P away on purpose.
  if (g.no_preempt.get() != 0 || g.blocking.get() != 0) return false;
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (here < g.stack.low || here >= g.stack.top)
    return false;  // a signal stack, or a stack that the program made
  return is_thread_as_usual(m);
}

}  // namespace

extern "C" {

// A named function, so that the link can ask for this file (CMakeLists.txt).
[[gnu::cold, gnu::noinline]] void tuza_checkpoint(const M* m) {
  if (!is_due(*m) || !may_park(*m)) return;
  // A checkpoint may lie between a system call and the read of its error.
  const int error = last_error();
  parking_point_slow();
  set_last_error(error);
}

void __sanitizer_cov_trace_pc() {
  if constexpr (!kOptimised) return;
  const M* m = current_m();
  if (m == nullptr) return;
  if ((m->taken.load(std::memory_order_relaxed) | m->yield_asked.load(std::memory_order_relaxed)) != 0)
      [[unlikely]]
    tuza_checkpoint(m);
}
}

namespace {

[[maybe_unused]] const bool g_told_sysmon = kOptimised && ask_before_taking();

}  // namespace
}  // namespace tuza::rt
