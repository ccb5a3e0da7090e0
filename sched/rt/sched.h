// The state of one runtime: what Ms and Ps share.
//
// One per tuza::run, mapped, reached through its Ms, or through active() by threads that are not Ms.
// Each member is a mechanism with a file of its own; here one sees them together.
//
// Lock order: procs_mutex first; under it, or under none, one of the others (IdleMs, GlobalQueue, GPool,
// TimerHeap, ms_mutex), which are leaves, but that sysmon alone holds two of the GRQ's; FakeTime's come before these.
#pragma once

#include <signal.h>
#include <tuza/sched/arch/current_m.h>
#include <tuza/sched/rt/idle/cpu_limit.h>
#include <tuza/sched/rt/idle/ended_threads.h>
#include <tuza/sched/rt/idle/idle_mask.h>
#include <tuza/sched/rt/idle/idle_ms.h>
#include <tuza/sched/rt/memory/g_pool.h>
#include <tuza/sched/rt/p.h>
#include <tuza/sched/rt/queue/backlog.h>
#include <tuza/sched/rt/queue/global_queues.h>
#include <tuza/sched/rt/queue/poll_role.h>
#include <tuza/sched/rt/report/debug_options.h>
#include <tuza/sched/rt/report/stall_report.h>
#include <tuza/sched/rt/slice/preempt_signal.h>
#include <tuza/sched/rt/slice/slice_options.h>
#include <tuza/sched/rt/slice/sysmon.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {

struct EndHooks;

struct Sched {
  // -- Constant after start.
  EndHooks* end_hooks = nullptr;  // constant while it runs
  std::uint64_t run_number = 0;   // of this runtime among those of the process, from 1
  DebugOptions debug;
  SliceOptions slice;
  std::int64_t started_ns = 0;
  CpuLimit cpu_limit;
  sigset_t signal_mask{};  // of the thread that called run: Ms take it over from there, not from their maker

  // -- Nearly so: each pick reads it, which would miss the cache beside what the queues write.
  Backlog backlog;

  // -- Ps. ps[i] is constructed for i < procs_made, idle or held for i < max_procs; those in between retire.
  P* ps = nullptr;  // kMaxProcsLimit slots
  std::atomic<std::int32_t> procs_made{0};
  std::atomic<std::int32_t> max_procs{0};
  RawMutex procs_mutex;                       // rt/idle/procs.h
  std::atomic<bool> procs_fixed{false};       // the environment or the program chose: do not follow the quota
  std::atomic<std::int32_t> surplus_held{0};  // surplus Ps not retired; written under procs_mutex
  IdleMask idle_ps;

  // -- Ms. ms[i] is constructed for i < ms_made.
  static constexpr std::uint32_t kMaxMs = 65'536;
  M* ms = nullptr;  // kMaxMs slots
  std::atomic<std::uint32_t> ms_made{0};
  std::atomic<std::uint32_t> ms_live{0};  // threads of Ms that have not left the runtime
  RawMutex ms_mutex;                      // guards ms_spent, the growth of ms_made, fence_on_enter
  M* ms_spent = nullptr;                  // Ms whose threads have ended, or were refused, linked by idle_next
  EndedThreads ended_threads;
  bool fence_on_enter = false;  // membarrier(2) is not there (rt/base/heavy_fence.h); written by sysmon too
  std::int64_t fence_demanded_ns = 0;              // since when, if not from the start; owner: sysmon
  std::atomic<std::uint32_t> spinning{0};          // Ms that scan for work and have a P
  std::atomic<std::uint64_t> wakeups{0};           // Ms woken to scan for work, so far
  std::atomic<std::uint32_t> max_threads{10'000};  // set_max_threads()
  IdleMs idle_ms;
  MMaker maker;

  // -- Goroutines.
  GlobalQueues grq;
  GPool gs;
  std::atomic<std::uint64_t> spawned_outside{0};  // goroutines begun by threads without a P
  std::atomic<std::uint64_t> exited_outside{0};   // goroutines that ended without one
  std::atomic<std::int64_t> external_wakers{
      0};  // threads that promised to wake somebody (rt/report/deadlock.h)

  // -- I/O and time.
  PollRole poll;
  std::atomic<std::int64_t> io_waits_outside{0};  // as P::io_waits, of threads without a P
  Sysmon sysmon;
  PreemptSignal preempt_signal;
  StallReport stalls;
  // A cheap clock: monotonic ns, advanced by polls, housekeeping and sysmon; behind by milliseconds at
  // most while anything runs, stale while everything is idle.
  std::atomic<std::int64_t> coarse_ns{0};
  // The time at which some waiting M wakes up for timers (rt/idle/idle.cpp).
  std::atomic<std::int64_t> timer_watch_ns{TimerHeap::kNever};

  // -- The end (rt/lifecycle/lifecycle.h).
  std::atomic<bool> end_claimed{false};
  std::atomic<bool> stopping{false};
  Note main_done;                    // where the thread that called run waits until main has returned
  std::atomic<bool> exiting{false};  // a goroutine has called exit(), on its stack
  std::atomic<bool> main_goexited{false};
  std::atomic<bool> deadlock_reported{false};

  [[nodiscard]] P& p(std::int32_t id) const { return ps[id]; }
  [[nodiscard]] std::int32_t procs() const { return max_procs.load(std::memory_order_relaxed); }

  // S2 of the parking protocol: some P that is not surplus is idle. Sequentially consistent.
  [[nodiscard]] bool any_p_idle() const { return idle_ps.any(max_procs.load(std::memory_order_seq_cst)); }
  // When the first timer of any P is due, or TimerHeap::kNever.
  [[nodiscard]] std::int64_t next_timer_ns(std::memory_order order = std::memory_order_relaxed) const;
  // Goroutines wait for the I/O source. Exact when nothing runs, else of about now.
  [[nodiscard]] bool has_io_waiters() const;
  // `n` goroutines that waited for I/O were found ready; `p` is held by the caller, or null.
  void io_waits_ended(P* p, std::int64_t n);
};

extern "C" {
// The runtime of this process, null outside tuza::run. Found by the gdb script under this name; written by
// rt/lifecycle/lifecycle.cpp.
extern std::atomic<Sched*> tuza_sched;
}
Sched* active();

// The runtime, for any thread. While a thread that is not an M holds one, tuza::run does not return.
class ExternalEntry {
 public:
  explicit ExternalEntry(const M* m = current_m());
  // Takes over what detach() of another one has left open.
  struct Adopt {};
  explicit ExternalEntry(Adopt);
  ~ExternalEntry();
  // Leaves the entry open for an adopting one on the same thread. False: there is nothing to adopt.
  [[nodiscard]] bool detach();
  ExternalEntry(const ExternalEntry&) = delete;
  ExternalEntry& operator=(const ExternalEntry&) = delete;
  [[nodiscard]] Sched* sched() const { return sched_; }  // null: no runtime

 private:
  Sched* sched_ = nullptr;
  bool counted_ = false;
};

// At the end of a runtime that active() does not return any more: until no thread holds an entry to it.
void wait_for_external_entries(std::int64_t deadline_ns);

}  // namespace tuza::rt
