// G: a goroutine.
//
// Gs are type-stable: they are mapped in slabs, recycled through free lists, and never unmapped. A stale
// pointer therefore always points to some G; dumps, debuggers and wakers rely on this. A G is not stored on
// its stack, which it usually gets only when it first runs (rt/memory/g_pool.h says why).
//
// Every field names its owner. "The holder" is the thread that may run the goroutine or move it to a queue:
// the M that runs it, the thread that took it from a queue, or the waker that won it from a wait queue.
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
#include <span>
#include <string_view>

namespace tuza::rt {

class LocalTable;
struct M;
struct PendingWait;

enum class GStatus : std::uint32_t {
  kDead,      // on a free list, or being set up by its spawner; no user code runs, no thread uses its stack
  kRunnable,  // on exactly one run queue, or held by the thread that moves it; context saved
  kRunning,   // current goroutine of one M, which owns its stack; the only status in which user code runs:
              // with a P, without one, or suspended (rt/slice/lane.h)
  kWaiting,   // on no run queue; what it waits for will call ready(); context saved
  kPinned,    // kWaiting, while another thread uses its stack: sysmon, which gives unused pages back
              // (rt/memory/idle_stacks.h), or a dump, which walks it (rt/report/walk.h)
};

// Copies memory; false if there is none.
using ReadMemory = bool (*)(void* into, const void* from, std::size_t bytes);
// Writes what a goroutine works on, and returns the length; 0: nothing to say now (rt/report/activity.h).
using Describe = std::size_t(const void* context, ReadMemory read, std::span<char> into);

const char* name(GStatus status);
inline bool waits(GStatus status) { return status == GStatus::kWaiting || status == GStatus::kPinned; }

struct alignas(64) G {
  // -- What a switch reads and writes, in one cache line. Owner: the holder.
  Context context;    // sp is null until it first runs
  G* link = nullptr;  // next in the one list or queue that this goroutine is on
  std::atomic<GStatus> status{GStatus::kDead};
  std::uint32_t rt_depth = 0;     // nesting of rt::Enter (rt/enter.h); 0: user code
  ExceptionState exceptions;      // while it does not run
  Relaxed<M*> locked_m{nullptr};  // lock_os_thread: only this M may run it
  void (*entry)(void* closure) = nullptr;
  void* closure = nullptr;  // in inline_closure, or at the top of the stack

  // -- Owner: the holder; read by dumps.
  Stack stack;
  Relaxed<M*> last_m{nullptr};  // the M that ran it last
  Relaxed<std::int64_t> wait_since_ns{0};
  Relaxed<bool> nothing_below{false};  // nothing is in use below its stack pointer (rt/memory/idle_stacks.h)
  Relaxed<std::int64_t> trimmed_since_ns{0};  // wait_since_ns when its stack was last trimmed; owner: sysmon
  std::int64_t returned_since_ns = -1;  // wait_since_ns when it last came back early (rt/slice/handoff.cpp)
  Relaxed<WaitReason> wait_reason{WaitReason::kNone};
  PendingWait* pending_wait = nullptr;  // the innermost; null: nothing to withdraw (detail/pending_wait.h)
  // Waits begun since its last stall (rt/queue/backlog.h). Sysmon resets it; a concurrent increment may undo
  // the reset, which is harmless.
  Relaxed<std::uint32_t> waits_begun{0};
  bool exiting = false;                  // goexit() is unwinding its stack
  bool system = false;                   // belongs to the runtime: not counted, not reported as deadlocked
  std::uint32_t lock_depth = 0;          // nesting of lock_os_thread
  Relaxed<std::uint32_t> blocking{0};    // nesting of BlockingCall; sysmon reads it
  Relaxed<std::uint32_t> calls{0};       // outermost BlockingCalls so far: distinguishes one from the next
  Relaxed<std::uint32_t> no_preempt{0};  // nesting of NoPreempt; the signal handler reads it
  Timer timer;                           // for sleep_for() and sleep_until()

  // -- Constant from spawn to exit.
  Relaxed<std::uint64_t> id{0};
  Relaxed<std::uint64_t> parent_id{0};
  Relaxed<const char*> site_file{nullptr};
  Relaxed<const char*> site_function{nullptr};
  Relaxed<std::uint32_t> site_line{0};
  Relaxed<const char*> stack_setting{nullptr};  // what gives it a larger stack

  // What it works on, for reports; null: unknown. Owner: the goroutine. Its signal handler reads both, and so do
  // dumps, which may see the one of another time than the other (rt/report/activity.h).
  Relaxed<Describe*> describe{nullptr};
  Relaxed<const void*> described{nullptr};

  // Zero-terminated; written by the goroutine itself and by its spawner. Other threads may read it meanwhile,
  // and may then see parts of the old name and of the new one.
  static constexpr std::size_t kNameBytes = 28;
  std::array<Relaxed<char>, kNameBytes> name_text;

  // What it does before it parks next (rt/slice/before_park.h); null: nothing. Owner: the goroutine.
  void (*before_park)(void* arg) = nullptr;
  void* before_park_arg = nullptr;

  // The goroutine's values of GoroutineLocals (sync/goroutine_local.h); null: none. Owner: the goroutine.
  LocalTable* locals = nullptr;

  // The function object of go(), if it is small. Before a goroutine first runs it has no stack that could hold
  // the object.
  static constexpr std::size_t kInlineClosureBytes = 64;
  alignas(16) std::byte inline_closure[kInlineClosureBytes];

  [[no_unique_address]] SanitizerState sanitizer;

  // Prefetches the part of the stack that a switch to this goroutine reads first.
  void prefetch_context() const {
    __builtin_prefetch(context.sp);
    __builtin_prefetch(static_cast<const char*>(context.sp) + 64);
    __builtin_prefetch(static_cast<const char*>(context.sp) + 192);
  }

  void set_name(std::string_view text);
  // For the goroutine itself.
  [[nodiscard]] std::string_view name() const { return reinterpret_cast<const char*>(name_text.data()); }
  // For other threads.
  struct Name {
    char text[kNameBytes];
  };
  [[nodiscard]] Name copy_name() const;

  // Changes the status. Aborts with a message that names the statuses if the goroutine is not in `from`. A
  // plain load and store suffice, because only the holder calls it. A waiting goroutine has no holder: its
  // waker (win()) and the user of its stack (pin()) acquire it by compare and swap.
  void transition(GStatus from, GStatus to) {
    const GStatus seen = status.load(std::memory_order_relaxed);
    if (seen != from) [[unlikely]]
      illegal_transition(seen, from, to);
    status.store(to, std::memory_order_release);
  }
  // kWaiting -> kRunnable. Two wakers of one goroutine are a bug that would run it twice. The compare and swap
  // always detects it.
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
  // kWaiting -> kPinned -> kWaiting. While it is pinned, the goroutine does not run, its context is saved, and
  // a waker waits (wait_for_unpin): for microseconds, because the caller is inside the runtime, where it cannot
  // be suspended, or longer if the kernel takes the caller's core. False: the goroutine does not wait, or
  // another thread has pinned it. Everything that the goroutine did before it parked is visible to the caller
  // (acquire), and what the caller does is visible to the goroutine when it resumes (release).
  [[nodiscard]] bool pin() {
    GStatus waiting = GStatus::kWaiting;
    return status.compare_exchange_strong(waiting, GStatus::kPinned, std::memory_order_acquire);
  }
  void unpin() { transition(GStatus::kPinned, GStatus::kWaiting); }
  // For a caller that has found the goroutine pinned `tries` times: spins, then sleeps briefly in case the
  // thread that has pinned it needs this core.
  [[gnu::cold]] static void wait_for_unpin(unsigned tries);

 private:
  [[noreturn, gnu::cold]] void illegal_transition(GStatus seen, GStatus from, GStatus to) const;
};

}  // namespace tuza::rt
