// G: a goroutine.
//
// Gs are type-stable: mapped in slabs, recycled through free lists, never given back, so that a stale
// pointer always points to some G (dumps, debuggers and wakers rely on it). A G is not stored on its own
// stack; it usually gets one only when it runs for the first time (rt/memory/g_pool.h says why).
//
// Every field names its owner. "The holder" is the thread that may run the goroutine or move it to a queue:
// the M that runs it, the thread that took it from a queue, the waker that won it from a wait queue.
#pragma once

#include <tuza/sched/arch/context.h>
#include <tuza/sched/arch/exception_state.h>
#include <tuza/sched/arch/sanitizer.h>
#include <tuza/sched/detail/runtime_timer.h>
#include <tuza/sched/rt/base/relaxed.h>
#include <tuza/sched/rt/memory/stack.h>
#include <tuza/sched/wait_reason.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tuza::rt {

class LocalTable;
struct M;
struct PendingWait;

enum class GStatus : std::uint32_t {
  kDead,      // on a free list, or being set up by its spawner; no user code; its stack is nobody's
  kRunnable,  // on exactly one run queue, or in the hands of the thread that moves it; context saved
  kRunning,   // current goroutine of one M, which owns its stack; the only status in which user code runs,
              // with a P, without one, or suspended in the middle of it (rt/slice/lane.h)
  kWaiting,   // on no run queue; whatever it waits for will call ready(); context saved
  kPinned,    // kWaiting, while somebody is at its stack: sysmon, who gives unused pages back
              // (rt/memory/idle_stacks.h), or a dump, which walks it (rt/report/walk.h)
};

const char* name(GStatus status);
inline bool waits(GStatus status) { return status == GStatus::kWaiting || status == GStatus::kPinned; }

struct alignas(64) G {
  // -- What a switch touches, in one cache line. Owner: the holder.
  Context context;    // sp is null until it has run for the first time
  G* link = nullptr;  // next in the one list or queue this goroutine is on
  std::atomic<GStatus> status{GStatus::kDead};
  std::uint32_t rt_depth = 0;     // how deep inside the runtime (rt/enter.h); 0: user code
  ExceptionState exceptions;      // while it does not run
  Relaxed<M*> locked_m{nullptr};  // lock_os_thread: only this M may run it
  void (*entry)(void* closure) = nullptr;
  void* closure = nullptr;  // in inline_closure, or at the top of its stack

  // -- Owner: the holder; read by dumps.
  Stack stack;
  Relaxed<M*> last_m{nullptr};  // the M that ran it last
  Relaxed<std::int64_t> wait_since_ns{0};
  Relaxed<bool> nothing_below{false};  // below its stack pointer, when it parks (rt/memory/idle_stacks.h)
  Relaxed<std::int64_t> trimmed_since_ns{0};  // wait_since_ns when its stack was last trimmed; owner: sysmon
  std::int64_t returned_since_ns = -1;  // wait_since_ns when it last came back early (rt/slice/handoff.cpp)
  Relaxed<WaitReason> wait_reason{WaitReason::kNone};
  PendingWait* pending_wait = nullptr;  // the innermost; null: nothing to withdraw (detail/pending_wait.h)
  // Since it last stalled (rt/queue/backlog.h): sysmon sets it to 0, which may be lost to one more. Harmless.
  Relaxed<std::uint32_t> waits_begun{0};
  bool exiting = false;                  // goexit() unwinds it
  bool system = false;                   // belongs to the runtime: not counted, not reported as deadlocked
  std::uint32_t lock_depth = 0;          // nesting of lock_os_thread
  Relaxed<std::uint32_t> blocking{0};    // nesting of BlockingCall; sysmon looks at it
  Relaxed<std::uint32_t> calls{0};       // outermost BlockingCalls so far, to tell one from the next
  Relaxed<std::uint32_t> no_preempt{0};  // nesting of NoPreempt; the signal handler looks at it
  Timer timer;                           // sleep

  // -- Constant from spawn to exit.
  Relaxed<std::uint64_t> id{0};
  Relaxed<std::uint64_t> parent_id{0};
  Relaxed<const char*> site_file{nullptr};
  Relaxed<const char*> site_function{nullptr};
  Relaxed<std::uint32_t> site_line{0};

  // Zero-terminated; written by the goroutine itself and by its spawner. Chars that can be read while they
  // are written: what is read may be half the old name and half the new one.
  static constexpr std::size_t kNameBytes = 28;
  std::array<Relaxed<char>, kNameBytes> name_text;

  // What the goroutine keeps in GoroutineLocals (sync/goroutine_local.h); null: nothing. Owner: itself.
  LocalTable* locals = nullptr;

  // The function object of go(), if it is small: while the goroutine waits for its first turn it has no
  // stack to keep it on.
  static constexpr std::size_t kInlineClosureBytes = 64;
  alignas(16) std::byte inline_closure[kInlineClosureBytes];

  [[no_unique_address]] SanitizerState sanitizer;

  // Fetches the part of the stack that a switch to this goroutine reads first.
  void prefetch_context() const {
    __builtin_prefetch(context.sp);
    __builtin_prefetch(static_cast<const char*>(context.sp) + 64);
    __builtin_prefetch(static_cast<const char*>(context.sp) + 192);
  }

  void set_name(std::string_view text);
  // For the goroutine itself.
  [[nodiscard]] std::string_view name() const { return reinterpret_cast<const char*>(name_text.data()); }
  // For others.
  struct Name {
    char text[kNameBytes];
  };
  [[nodiscard]] Name copy_name() const;

  // The one function that changes a status. Aborts, naming both, if the goroutine is not in `from`.
  // Plain load and store: the holder is alone. A goroutine that waits has no holder: its waker (win()) and
  // who is at its stack (pin()) get it by compare and swap.
  void transition(GStatus from, GStatus to) {
    const GStatus seen = status.load(std::memory_order_relaxed);
    if (seen != from) [[unlikely]]
      illegal_transition(seen, from, to);
    status.store(to, std::memory_order_release);
  }
  // kWaiting -> kRunnable. Two wakers of one goroutine are a bug that would run it twice; the compare and
  // swap catches it always.
  void win() {
    GStatus seen = GStatus::kWaiting;
    for (unsigned tries = 0;
         !status.compare_exchange_strong(seen, GStatus::kRunnable, std::memory_order_acq_rel); ++tries)
        [[unlikely]] {
      if (seen != GStatus::kPinned) illegal_transition(seen, GStatus::kWaiting, GStatus::kRunnable);
      seen = GStatus::kWaiting;
      wait_for_unpin(tries);
    }
  }
  // kWaiting -> kPinned -> kWaiting. In between the goroutine does not run, its context is saved, and a waker
  // waits (wait_for_unpin): for microseconds, as the caller is inside the runtime, where it cannot be
  // suspended, or longer if the kernel takes the caller's core. False: it does not wait, or somebody else has
  // pinned it. What the goroutine has done before it parked has happened
  // (acquire), and what the caller has done here happens before it goes on (release).
  [[nodiscard]] bool pin() {
    GStatus waiting = GStatus::kWaiting;
    return status.compare_exchange_strong(waiting, GStatus::kPinned, std::memory_order_acquire);
  }
  void unpin() { transition(GStatus::kPinned, GStatus::kWaiting); }
  // For whoever has met a pinned goroutine `tries` times: a moment, or a short sleep, in case the thread that
  // has pinned it needs this core.
  [[gnu::cold]] static void wait_for_unpin(unsigned tries);

 private:
  [[noreturn, gnu::cold]] void illegal_transition(GStatus seen, GStatus from, GStatus to) const;
};

}  // namespace tuza::rt
