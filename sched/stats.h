// Public header, part of <tuza/tuza.h>.
//
// The runtime in numbers, while it runs: for metrics, for a page that draws it.
//
// Nothing is stopped and no lock is held for long: each number was true at some moment during the call, but
// not all at the same one, so that a goroutine that moves may be seen twice or not at all.
//
// Thread-safe; on any thread. Outside tuza::run everything is zero or empty. Nothing here parks but
// count_goroutines(), which lets others run between pieces of its work.
#pragma once

#include <tuza/sched/wait_reason.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tuza {

// The whole, in time that does not depend on how many goroutines there are.
struct SchedStats {
  int max_procs = 0;
  int procs_idle = 0;
  // Ms: threads that run goroutines. Those that wait are idle; those in the lane run a goroutine without a P:
  // they block, compute, or are suspended.
  std::uint32_t threads = 0, threads_idle = 0, threads_spinning = 0;
  std::uint32_t lane = 0, lane_computing = 0, lane_suspended = 0;
  const char* poller = "none";  // who waits for I/O: "M", "thread", "none"

  std::uint64_t goroutines = 0;
  // Lengths of the levels of the GRQ: woken (latecomers among them), new, returned. What waits at the Ps is in
  // proc_stats().
  std::array<std::uint32_t, 3> global_queue{};
  std::uint32_t local_queues = 0;  // their sum

  // So far.
  std::uint64_t started = 0, ended = 0;  // goroutines
  std::uint64_t picks = 0;               // choices of the next goroutine
  std::uint64_t slices = 0;
  std::uint64_t handoffs = 0, handoffs_withdrawn = 0;  // Ps that sysmon took, or tried to
  std::uint64_t lane_arrivals = 0;                     // goroutines that lost their P, or gave it away
  std::uint64_t suspend_signals = 0;
  std::uint64_t wakeups = 0;  // Ms that were woken to look for work
  std::uint64_t sysmon_ticks = 0;

  std::size_t stacks = 0;       // goroutine stacks that exist, in use or not
  std::size_t stack_bytes = 0;  // their address space; memory is what was touched of it
  std::int64_t uptime_ns = 0;   // since tuza::run began
};
[[nodiscard]] SchedStats sched_stats();

enum class ProcState : std::uint8_t {
  kIdle,     // held by no M
  kRunning,  // an M runs goroutines with it, or looks for one
  kRetired,  // surplus after max_procs was lowered
};
const char* name(ProcState state);

// A P.
struct ProcStats {
  int id = 0;
  ProcState state = ProcState::kIdle;
  int machine = -1;                     // the M that holds it
  std::uint32_t woken = 0, queued = 0;  // its local run queue: the ring of those just woken, the other ring
  bool has_next = false;                // runnext
  std::uint64_t picks = 0, slices = 0;  // so far
  std::size_t timers = 0;
  std::int64_t average_run_ns = 0;  // how long goroutines run here, about
};
[[nodiscard]] std::vector<ProcStats> proc_stats();

enum class MachineState : std::uint8_t {
  kIdle,        // sleeps, or waits for I/O
  kScheduling,  // has a P and looks for a goroutine
  kRunning,     // runs a goroutine with a P
  kLane,        // runs one without a P
  kBlocked,     // the same, in a blocking call that is marked as such
  kSuspended,   // the same, and was stopped in the middle of it
};
const char* name(MachineState state);

// An M whose thread lives.
struct MachineStats {
  std::uint32_t id = 0;
  std::int32_t thread_id = 0;  // the kernel's
  MachineState state = MachineState::kIdle;
  int proc = -1;                       // the P that it holds
  std::uint64_t goroutine = 0;         // the one that it runs; 0: none
  std::uint64_t locked_goroutine = 0;  // the one that owns it (lock_os_thread); 0: none
};
[[nodiscard]] std::vector<MachineStats> machine_stats();

// Goroutines by what they do. Looks at each of them, some nanoseconds per goroutine. Parks.
struct GoroutineCounts {
  std::size_t running = 0, runnable = 0, waiting = 0;
  std::array<std::size_t, kWaitReasons> waiting_for{};  // by WaitReason
};
[[nodiscard]] GoroutineCounts count_goroutines();

}  // namespace tuza
