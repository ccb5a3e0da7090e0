// What a compiler inserts into code that is built with tuza::checkpoints: a call at the start of each basic
// block, so that every loop and every function has one. A goroutine that has used up its slice, or lost its
// P, parks in it, at once and on its own thread's time: no signal, no thread of its own, however many
// compute.
//
// GCC and Clang call a plain function (-fsanitize-coverage=trace-pc) and save around it what the ABI lets a
// function change; the switch keeps the rest. So the program is safe to leave here as far as the compiler
// knows. What it does not know is asked by may_park(); what cannot be asked is the contract of instrumented
// code (HACKING.md, checkpoints).
//
// Rejected: -finstrument-functions and -pg -mfentry call at functions only, and a loop without calls never
// gets there; back edges alone, or a check in line, need a plugin of the compiler, one for each release.
//
// Not instrumented itself, like the rest of Tuza, and compiled without a frame of its own.
#include <signal.h>
#include <sys/syscall.h>
#include <tuza/sched/arch/current_m.h>
#include <tuza/sched/arch/last_error.h>
#include <tuza/sched/arch/syscall.h>
#include <tuza/sched/rt/m.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/rt/slice/slices.h>

#include <cstdint>
#include <cstring>

namespace tuza::rt {
namespace {

// Where nothing is inlined, the runtime calls templates between looking at its M and using it. Programs may
// bring instrumented copies of these, and after a park there it would use another thread's M. Even the
// callback below would call itself. So it does nothing then.
#if defined(__OPTIMIZE__)
constexpr bool kOptimised = true;
#else
constexpr bool kOptimised = false;
#endif

// kEnded, kForked: there is nobody to yield to, and whoever is waited for must get on. kTaking is decided
// soon; kFence alone means nothing.
bool is_due(const M& m) {
  const std::uint32_t taken = m.taken.load(std::memory_order_relaxed);
  if ((taken & (taken::kEnded | taken::kForked)) != 0) return false;
  return (taken & taken::kGone) != 0 || m.yield_asked.load(std::memory_order_relaxed) != 0;
}

// In a handler the signal is blocked (if it was not installed with SA_NODEFER), and sigreturn belongs to the
// thread. A child of vfork has its parent's memory, so that it looks like its parent's M. (Two system calls;
// the questions before these are cheap.)
bool is_thread_as_usual(const M& m) {
  if (sys::invoke(SYS_gettid) != m.thread_id) return false;
  std::uint64_t blocked = 0, usual = 0;
  static_assert(sizeof m.sched->signal_mask >= sizeof usual);  // the kernel has 64 signals
  sys::invoke(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &blocked, sizeof blocked);
  std::memcpy(&usual, &m.sched->signal_mask, sizeof usual);
  return (blocked & ~usual) == 0;
}

// Whether the goroutine is in its own code, on its own stack, and may change its thread.
bool may_park(const M& m) {
  const G& g = *m.current;
  // in_rt too: templates of the standard library that the runtime uses may be the instrumented copies, and
  // rt_depth is 0 already in the last steps of ~Enter.
  if (g.rt_depth != 0 || m.in_rt.load(std::memory_order_relaxed) != 0) return false;
  // In a blocking call it has given its P away on purpose.
  if (g.no_preempt.get() != 0 || g.blocking.get() != 0) return false;
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (here < g.stack.low || here >= g.stack.top)
    return false;  // a signal stack, or one that the program made
  return is_thread_as_usual(m);
}

}  // namespace

extern "C" {

// Named, so that the link can ask for this file (CMakeLists.txt).
[[gnu::cold, gnu::noinline]] void tuza_checkpoint(const M* m) {
  if (!is_due(*m) || !may_park(*m)) return;
  // A checkpoint may stand between a system call and the look at its error.
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
