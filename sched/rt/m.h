// M: a machine, an OS thread that runs goroutines.
//
// An M's own stack is the stack of g0, the context in which the scheduler runs when it cannot switch straight
// to another goroutine. Ms are mapped, never malloc'ed, and type-stable like Gs. The thread that called
// tuza::run is not an M: the maker of Ms creates all of them (rt/idle/idle_ms.h).
#pragma once

#include <pthread.h>
#include <signal.h>
#include <tuza/sched/arch/exception_state.h>
#include <tuza/sched/rt/base/note.h>
#include <tuza/sched/rt/base/random.h>
#include <tuza/sched/rt/base/raw_mutex.h>
#include <tuza/sched/rt/base/thread_cpu.h>
#include <tuza/sched/rt/g.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {

struct P;
struct SampleRequest;
struct Sched;

// Work that the last switch left to be done for the goroutine that it switched away from. That goroutine must
// not be published (queued, handed to a waker, freed) before its context is saved, so the next context on the
// M does this work.
struct PendingCommit {
  // Called with the goroutine in its new status. False cancels a park: the goroutine becomes runnable again.
  using Function = bool (*)(G* left, void* argument);
  G* g = nullptr;  // null: the switch left g0, and nothing is to be done
  GStatus becomes = GStatus::kWaiting;
  Function function = nullptr;
  void* argument = nullptr;
};

namespace taken {
inline constexpr std::uint32_t kTaking = 1;  // sysmon is trying to take the P
inline constexpr std::uint32_t kGone = 2;    // a goroutine runs here without a P
inline constexpr std::uint32_t kEnded = 4;   // the runtime has ended without this thread
inline constexpr std::uint32_t kForked = 8;  // this is the child of a fork
inline constexpr std::uint32_t kFence = 16;  // membarrier(2) is not available; once set, never cleared
inline constexpr std::uint32_t kGive = 32;   // sysmon asks for the P, see ask_to_give()
}  // namespace taken

// Why a goroutine has lost its P.
enum class GoneFor : std::uint8_t {
  kSlice,  // the goroutine has computed for a whole slice
  kEarly,  // the goroutine has computed for less than a slice, and others wait
  kOther,  // the goroutine blocks, or has given the P away
};

// What sysmon knows about an M whose goroutine runs without a P.
struct LaneSeat {
  bool seated = false;
  std::int64_t since_ns = 0;        // when its P was taken, or a scan last found it in a blocking call
  bool burning = false;             // it has used CPU recently
  std::int64_t computed_ns = 0;     // when a scan last found that it computed
  bool waits = false;               // a scan found it waiting in the kernel: it may use locks
  bool waited = false;              // it has waited in the kernel during this time quantum
  bool served = false;              // it used CPU between the last two scans
  std::int64_t asked_ns = 0;        // when it was asked to suspend itself
  std::int64_t quantum_cpu_ns = 0;  // CPU time of the thread when its time quantum began
  std::int64_t seen_cpu_ns = 0;     // CPU time of the thread at the last scan
  std::int64_t seen_ns = 0;         // time of the last scan
  std::int64_t sample_ns = 0;       // sampling interval that ended with the last scan
  std::uint32_t clock_only = 0;     // consecutive scans that read its CPU clock only
  std::uint64_t stop = 0;           // stop sequence number: the order in which sysmon noticed suspensions
  bool for_disk = false;            // it was asked to suspend itself while it waited for the disk
  bool marked = false;              // it was suspended in a marked blocking call
  void* queue = nullptr;            // the queue of suspended Ms that it is in
  M* next = nullptr;                // in that queue
  M* previous = nullptr;
};

struct alignas(128) M {
  M(std::uint32_t number, std::uint64_t seed) : id(number), random(seed) {}

  // -- Constant while its thread lives. An M whose thread has ended gets another thread.
  const std::uint32_t id;
  Sched* sched = nullptr;
  ExceptionState* exceptions = nullptr;  // the thread's own exception state
  Relaxed<std::int32_t> thread_id{0};    // 0: no thread
  // Of the thread, and still of the last one after its end; of the reader, before there has been any.
  Relaxed<CpuClock> cpu_clock{kReadersCpuClock};
  pthread_t thread{};             // guarded by Sched::ms_mutex
  std::uintptr_t stack_mark = 0;  // an address near the top of the thread's stack
  bool has_thread = false;        // it has a thread that must be joined; guarded by Sched::ms_mutex
  void* signal_stack = nullptr;   // for the handlers of stack overflows and of suspension
  stack_t previous_signal_stack{};

  // -- Owner: the thread itself.
  Followed<G> current;          // the goroutine that it runs, or &g0; sysmon reads it
  P* p = nullptr;               // guarded by rt/enter.h; sysmon takes it away under handoff_mutex
  std::int32_t last_p_id = -1;  // the P that it held last, whose caches may still be warm
  PendingCommit pending;
  G* handed = nullptr;  // picked by this M or given to it, but not run yet
  bool spinning = false;
  bool known = false;             // its thread counts as known (rt/base/foreign_threads.h)
  bool starting = true;           // neither idle nor at work yet, see MMaker
  bool fresh = true;              // it has never run a goroutine: its malloc arena is unused
  bool may_run_programs = false;  // its thread has called allow_programs(), and that found memory
  Random random;

  // -- The guard of the runtime (rt/enter.h, rt/slice/handoff.h). in_rt is written by the thread and read by
  // sysmon. yield_asked is a mark of the goroutine that has used up its slice, kLookMark, or 0; both write it.
  std::atomic<std::uint32_t> in_rt{1};
  std::atomic<std::uint32_t> taken{
      0};  // bits of namespace taken; rt/slice/handoff.h says which thread writes which
  std::atomic<std::uint32_t> yield_asked{0};
  RawMutex handoff_mutex;

  // -- While its goroutine runs without a P (rt/slice/lane.h).
  std::atomic<std::uint32_t> suspend{0};  // a Suspend
  // The thread was suspended in its own code, not at a futex. The signal handler writes it before kStopped
  // (release); sysmon reads it after it has seen kStopped (acquire).
  Relaxed<bool> stopped_in_code{false};
  std::atomic<bool> arriving{false};  // on the list of arrivals, or about to be
  // The thread's CPU time when the P was taken. Written by the thread that took the P, under handoff_mutex,
  // before kGone; read by the M and by sysmon.
  Relaxed<std::int64_t> gone_cpu_ns{0};
  Relaxed<std::int64_t> gone_at_ns{0};         // when the P was taken, by the coarse clock
  GoneFor gone_for = GoneFor::kOther;          // why the P was taken
  std::atomic<bool> long_kernel_slice{false};  // its thread has the lane's hint, see leave_lane()
  std::int64_t reported_stall_ns = 0;          // owner: sysmon; the begin of the stall that was reported last
  std::atomic<SampleRequest*> sample{nullptr};  // a dump asks where the thread is (rt/report/sample.h)
  M* arrival_next = nullptr;                    // owner: the list of arrivals
  LaneSeat seat;                                // owner: sysmon

  // -- lock_os_thread: the goroutine that owns this thread. Owner: the thread, while it runs that goroutine.
  Relaxed<G*> locked_g{nullptr};
  bool thread_is_spent = false;      // its locked goroutine has exited: the thread must not be reused
  Relaxed<std::uintptr_t> arena{0};  // the malloc arena that it uses (rt/idle/malloc_arenas.h); 0: unknown
  bool has_forked =
      false;  // its thread must not end, because the kernel may then kill its children (rt/base/fork.h)

  // -- Idle: guarded by the lock of IdleMs while the M is on its list. The waker writes next_* before it wakes
  // the note.
  Note note;
  P* next_p = nullptr;         // the P that the waker gave it, or null
  bool next_spinning = false;  // it was woken to search for work
  M* idle_next = nullptr;
  M* idle_previous = nullptr;
  bool on_idle_list = false;
  bool retires = false;  // it is no longer needed: its thread ends
  bool makes = false;    // it must create another M, see MMaker

  alignas(64) G g0;
};

}  // namespace tuza::rt
