// Sched: the state of one runtime, shared by its Ms and Ps.
//
// There is one per tuza::run. It is mapped, and reached through its Ms, or through active() by threads that are
// not Ms. Each member is a mechanism with its own file.
//
// Lock order: the locks of FakeTime, then procs_mutex, then one of IdleMs, GlobalQueue, GPool, TimerHeap and
// ms_mutex. Under the last ones no other lock is taken, with one exception: sysmon holds the locks of two levels
// of the GRQ at once.
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
#include <tuza/sched/rt/report/deadlock_watch.h>
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
  EndHooks* end_hooks = nullptr;  // constant while the runtime runs
  std::uint64_t run_number = 0;   // counts the runtimes of the process, from 1
  DebugOptions debug;
  SliceOptions slice;
  std::int64_t started_ns = 0;
  CpuLimit cpu_limit;
  sigset_t
      signal_mask{};  // of the thread that called run; Ms inherit it instead of the mask of the maker of Ms

  // -- Rarely written. Every pick reads it: beside the queues' data it would cause cache misses.
  Backlog backlog;

  // -- Ps. ps[i] is constructed for i < procs_made; it is idle or held for i < max_procs, else it retires.
  P* ps = nullptr;  // kMaxProcsLimit slots
  std::atomic<std::int32_t> procs_made{0};
  std::atomic<std::int32_t> max_procs{0};
  RawMutex procs_mutex;                  // rt/idle/procs.h
  std::atomic<bool> procs_fixed{false};  // set by the environment or the program: do not follow the quota
  std::atomic<std::int32_t> surplus_held{0};  // surplus Ps that have not retired; written under procs_mutex
  IdleMask idle_ps;

  // -- Ms. ms[i] is constructed for i < ms_made.
  static constexpr std::uint32_t kMaxMs = 65'536;
  M* ms = nullptr;  // kMaxMs slots
  std::atomic<std::uint32_t> ms_made{0};
  std::atomic<std::uint32_t> ms_live{0};  // threads of Ms that have not left the runtime
  RawMutex ms_mutex;                      // also guards the growth of ms_made, and writes of fence_on_enter
  M* ms_spent TUZA_GUARDED_BY(ms_mutex) =
      nullptr;  // Ms whose threads have ended or were refused, linked by idle_next
  EndedThreads ended_threads;
  bool fence_on_enter = false;  // membarrier(2) is not available (rt/base/heavy_fence.h); sysmon may set it
  std::int64_t fence_demanded_ns = 0;              // when sysmon set fence_on_enter; owner: sysmon
  std::atomic<std::uint32_t> spinning{0};          // Ms that have a P and search for work
  std::atomic<std::uint64_t> wakeups{0};           // Ms woken to search for work, so far
  std::atomic<std::uint32_t> max_threads{10'000};  // set_max_threads()
  IdleMs idle_ms;
  MMaker maker;
  std::atomic<G*> main_g{nullptr};  // the main goroutine, once it runs: MMaker reads its status

  // -- Goroutines.
  GlobalQueues grq;
  GPool gs;
  std::atomic<std::uint64_t> spawned_outside{0};  // goroutines started by threads without a P
  std::atomic<std::uint64_t> exited_outside{0};   // goroutines that ended without a P
  std::atomic<std::int64_t> external_wakers{0};   // threads with an ExternalWaker (rt/report/deadlock.h)
  DeadlockWatch deadlock_watch;

  // -- I/O and time.
  PollRole poll;
  std::atomic<std::int64_t> io_waits_outside{0};  // like P::io_waits, for threads without a P
  Sysmon sysmon;
  PreemptSignal preempt_signal;
  StallReport stalls;
  // A cheap clock: monotonic ns, advanced by polls, housekeeping and sysmon. Late by at most some milliseconds
  // while anything runs; stale while everything is idle.
  std::atomic<std::int64_t> coarse_ns{0};
  // The time at which a waiting M wakes up for timers (rt/idle/idle.cpp).
  std::atomic<std::int64_t> timer_watch_ns{TimerHeap::kNever};

  // -- The end (rt/lifecycle/lifecycle.h).
  std::atomic<bool> end_claimed{false};
  std::atomic<bool> stopping{false};
  Note main_done;                    // the thread that called run waits here until main has returned
  std::atomic<bool> exiting{false};  // a goroutine has called exit(), on its stack
  std::atomic<bool> main_goexited{false};
  std::atomic<bool> deadlock_reported{false};

  [[nodiscard]] P& p(std::int32_t id) const { return ps[id]; }
  [[nodiscard]] std::int32_t procs() const { return max_procs.load(std::memory_order_relaxed); }

  // S2 of the parking protocol: whether a P that is not surplus is idle. Sequentially consistent.
  [[nodiscard]] bool any_p_idle() const { return idle_ps.any(max_procs.load(std::memory_order_seq_cst)); }
  // When the earliest timer of all Ps is due, or TimerHeap::kNever.
  [[nodiscard]] std::int64_t next_timer_ns(std::memory_order order = std::memory_order_relaxed) const;
  // Whether goroutines wait for the I/O source. Exact while nothing runs, otherwise approximate.
  [[nodiscard]] bool has_io_waiters() const;
  // `n` goroutines that waited for I/O were found ready. `p`: held by the caller, or null.
  void io_waits_ended(P* p, std::int64_t n);
};

extern "C" {
// The runtime of this process; null outside tuza::run. The gdb script finds it by this name.
// rt/lifecycle/lifecycle.cpp writes it.
extern std::atomic<Sched*> tuza_sched;
}
Sched* active();

// Access to the runtime for any thread. While a thread that is not an M holds an entry, tuza::run does not
// return.
class ExternalEntry {
 public:
  explicit ExternalEntry(const M* m = current_m());
  // Takes over the entry that detach() of another object left open.
  struct Adopt {};
  explicit ExternalEntry(Adopt);
  ~ExternalEntry();
  // Leaves the entry open, for an adopting object on the same thread. False: there is nothing to adopt.
  [[nodiscard]] bool detach();
  ExternalEntry(const ExternalEntry&) = delete;
  ExternalEntry& operator=(const ExternalEntry&) = delete;
  [[nodiscard]] Sched* sched() const { return sched_; }  // null: no runtime

 private:
  Sched* sched_ = nullptr;
  bool counted_ = false;
};

// Waits until no thread holds an entry to a runtime that active() no longer returns.
void wait_for_external_entries(std::int64_t deadline_ns);

}  // namespace tuza::rt
