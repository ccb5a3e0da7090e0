// Public header, part of <tuza/tuza.h>.
//
// Statistics of the running runtime, for metrics and dashboards.
//
// Nothing is stopped, and no lock is held for long. Each number was true at some moment during the call, but
// not all at the same moment: a goroutine that moves during the call may be counted twice or not at all.
//
// Thread-safe; on any thread. Outside tuza::run everything is zero or empty. Only count_goroutines() parks,
// to let others run between pieces of its work.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/sched/wait_reason.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tuza {

// Totals. Reading them takes a time that does not depend on the number of goroutines.
struct SchedStats {
  int max_procs = 0;
  int procs_idle = 0;
  // Ms: threads that run goroutines. Waiting Ms are idle. Ms in the lane run a goroutine without a P: they
  // block, compute, or are suspended.
  std::uint32_t threads = 0, threads_idle = 0, threads_spinning = 0;
  std::uint32_t lane = 0, lane_computing = 0, lane_suspended = 0;
  const char* poller = "none";  // the thread that waits for I/O: "M", "thread", "none"

  std::uint64_t goroutines = 0;
  // Lengths of the levels of the GRQ: woken (including latecomers), new, returned. proc_stats() has the
  // queues of the Ps.
  std::array<std::uint32_t, 3> global_queue{};
  std::uint32_t local_queues = 0;  // total length of the LRQs

  // Counters since the start of the run.
  std::uint64_t started = 0, ended = 0;  // goroutines
  std::uint64_t picks = 0;               // goroutines chosen to run next
  std::uint64_t slices = 0;
  std::uint64_t handoffs = 0, handoffs_withdrawn = 0;  // Ps that sysmon took, or tried to
  std::uint64_t lane_arrivals = 0;                     // goroutines that lost their P, or gave it away
  std::uint64_t suspend_signals = 0;
  std::uint64_t wakeups = 0;  // Ms that were woken to search for work
  std::uint64_t sysmon_ticks = 0;

  std::size_t stacks = 0;       // existing goroutine stacks, in use or not
  std::size_t stack_bytes = 0;  // their address space; only touched pages use memory
  std::int64_t uptime_ns = 0;   // since tuza::run began
};
[[nodiscard]] SchedStats sched_stats();

enum class ProcState : std::uint8_t {
  kIdle,     // held by no M
  kRunning,  // an M runs goroutines with it, or searches for one
  kRetired,  // surplus after max_procs was lowered
};
const char* name(ProcState state);

// A P.
struct ProcStats {
  int id = 0;
  ProcState state = ProcState::kIdle;
  int machine = -1;                     // the M that holds it
  std::uint32_t woken = 0, queued = 0;  // LRQ: the ring of goroutines just woken, the other ring
  bool has_next = false;                // runnext
  std::uint64_t picks = 0, slices = 0;  // since the start of the run
  std::size_t timers = 0;
  std::int64_t average_run_ns = 0;  // approximate run time of a goroutine here
};
[[nodiscard]] std::vector<ProcStats> proc_stats();

enum class MachineState : std::uint8_t {
  kIdle,        // sleeps, or waits for I/O
  kScheduling,  // has a P and searches for a goroutine
  kRunning,     // runs a goroutine with a P
  kLane,        // runs a goroutine without a P
  kBlocked,     // the same, inside a BlockingCall
  kSuspended,   // the same, suspended in the middle of its code
};
const char* name(MachineState state);

// An M with a live thread.
struct MachineStats {
  std::uint32_t id = 0;
  std::int32_t thread_id = 0;  // the kernel's thread id
  MachineState state = MachineState::kIdle;
  int proc = -1;                       // the P that it holds; -1: none
  std::uint64_t goroutine = 0;         // the goroutine that it runs; 0: none
  std::uint64_t locked_goroutine = 0;  // the goroutine that owns it (lock_os_thread); 0: none
};
[[nodiscard]] std::vector<MachineStats> machine_stats();

// Goroutines by state. Reads every goroutine, at some nanoseconds each. Parks.
struct GoroutineCounts {
  std::size_t running = 0, runnable = 0, waiting = 0;
  std::array<std::size_t, kWaitReasons> waiting_for{};  // by WaitReason
};
[[nodiscard]] GoroutineCounts count_goroutines();

}  // namespace tuza
