// M: a machine, an OS thread that runs goroutines.
//
// Its own stack is that of g0, the context in which the scheduler works when no goroutine can be switched to
// directly. Ms are mapped, never malloc'ed, and type-stable like Gs. The thread that called tuza::run is no
// M: the maker of Ms creates them all (rt/idle/idle_ms.h).
#pragma once

#include <pthread.h>
#include <signal.h>
#include <tuza/sched/arch/exception_state.h>
#include <tuza/sched/rt/base/note.h>
#include <tuza/sched/rt/base/random.h>
#include <tuza/sched/rt/base/raw_mutex.h>
#include <tuza/sched/rt/g.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {

struct P;
struct Sched;

// What is still to be done for the goroutine that was left by the last switch. It must not be published
// (queued, handed to a waker, freed) before its context is saved, so the next context on the M does it.
struct PendingCommit {
  // Called with the goroutine in its new status. Returns false to take a park back: the goroutine is then
  // made runnable again.
  using Function = bool (*)(G* left, void* argument);
  G* g = nullptr;  // null: g0 was left, nothing to do
  GStatus becomes = GStatus::kWaiting;
  Function function = nullptr;
  void* argument = nullptr;
};

namespace taken {
inline constexpr std::uint32_t kTaking = 1;  // sysmon tries to take the P
inline constexpr std::uint32_t kGone = 2;    // a goroutine runs here without a P
inline constexpr std::uint32_t kEnded = 4;   // the runtime has stopped without this thread
inline constexpr std::uint32_t kForked = 8;  // this is the child of a fork
inline constexpr std::uint32_t kFence = 16;  // from some moment on for ever: membarrier(2) is not there
inline constexpr std::uint32_t kGive = 32;   // sysmon asks for the P, see ask_to_give()
}  // namespace taken

// Why a goroutine has lost its P.
enum class GoneFor : std::uint8_t {
  kSlice,  // it has computed for a slice
  kEarly,  // it has computed for a shorter time, and others wait
  kOther,  // it blocks, or has given the P away
};

// What sysmon knows of an M whose goroutine runs without a P.
struct LaneSeat {
  bool seated = false;
  std::int64_t since_ns = 0;        // when its P was taken, or it was last seen in a blocking call
  bool burning = false;             // it used CPU lately
  bool waits = false;               // it was seen waiting in the kernel: it may use locks
  bool waited = false;              // in this turn
  bool served = false;              // it used CPU between the last two looks
  std::int64_t asked_ns = 0;        // when it was asked to stop
  std::int64_t quantum_cpu_ns = 0;  // CPU time of the thread when its turn began
  std::int64_t seen_cpu_ns = 0;     // and when it was last looked at
  std::int64_t seen_ns = 0;
  std::int64_t sample_ns = 0;    // how long until then
  std::uint32_t clock_only = 0;  // so many looks in a row at its clock alone
  std::uint64_t stop = 0;        // the how manieth of all stops its last one was, as sysmon came to see them
  bool for_disk = false;         // it was asked to stop while it waited for the disk
  bool marked = false;           // it was stopped in a blocking call that was marked
  void* queue = nullptr;         // of the suspended, that it is in
  M* next = nullptr;             // in that queue
  M* previous = nullptr;
};

struct alignas(128) M {
  M(std::uint32_t number, std::uint64_t seed) : id(number), random(seed) {}

  // -- Constant while its thread lives. An M whose thread has ended is given another one.
  const std::uint32_t id;
  Sched* sched = nullptr;
  ExceptionState* exceptions = nullptr;  // the thread's own words
  Relaxed<std::int32_t> thread_id{0};    // 0: it has none
  pthread_t thread{};                    // guarded by Sched::ms_mutex
  std::uintptr_t stack_mark = 0;         // an address near the top of the thread's stack
  bool has_thread = false;               // guarded by Sched::ms_mutex: and it is to be joined
  void* signal_stack = nullptr;          // for the handlers of stack overflows and of suspension
  stack_t previous_signal_stack{};

  // -- Owner: the thread itself.
  Followed<G> current;          // the goroutine it runs, or &g0; sysmon looks at it
  P* p = nullptr;               // what rt/enter.h guards; sysmon takes it away under handoff_mutex
  std::int32_t last_p_id = -1;  // the P it held last, whose caches may still be warm
  PendingCommit pending;
  G* handed = nullptr;  // picked, or given to it, but not run yet
  bool spinning = false;
  bool starting = true;           // neither idle nor at work yet, see MMaker
  bool fresh = true;              // it has never run a goroutine: its arena of malloc's is not in use
  bool may_run_programs = false;  // allow_programs() has been called by its thread
  Random random;

  // -- The guard of the runtime (rt/enter.h, rt/slice/handoff.h). in_rt: written by the thread, read by sysmon.
  // yield_asked: a mark of the goroutine that has used up its slice, or 0; written by both.
  std::atomic<std::uint32_t> in_rt{1};
  std::atomic<std::uint32_t> taken{0};  // bits of namespace taken; who writes which: rt/slice/handoff.h
  std::atomic<std::uint32_t> yield_asked{0};
  RawMutex handoff_mutex;

  // -- While its goroutine runs without a P (rt/slice/lane.h).
  std::atomic<std::uint32_t> suspend{0};  // a Suspend
  // Stopped there rather than at a futex. Its handler writes it before kStopped (release), sysmon reads it when
  // it has seen that (acquire).
  Relaxed<bool> stopped_in_code{false};
  std::atomic<bool> arriving{false};  // on the list of arrivals, or about to be
  // The thread's CPU time when the P was taken. Written by who took it, under handoff_mutex, before kGone;
  // read by the M and by sysmon.
  Relaxed<std::int64_t> gone_cpu_ns{0};
  std::int64_t gone_at_ns = 0;                 // and when; by the coarse clock
  GoneFor gone_for = GoneFor::kOther;          // and why
  std::atomic<bool> long_kernel_slice{false};  // its thread has the lane's hint, see leave_lane()
  std::int64_t reported_stall_ns = 0;          // owner: sysmon; when the stall began that was reported last
  M* arrival_next = nullptr;                   // owner: that list
  LaneSeat seat;                               // owner: sysmon

  // -- lock_os_thread: the goroutine that owns this thread. Owner: the thread, while it runs that goroutine.
  Relaxed<G*> locked_g{nullptr};
  bool thread_is_spent = false;      // its locked goroutine has exited: the thread must not be reused
  Relaxed<std::uintptr_t> arena{0};  // of malloc's, that it uses (rt/idle/malloc_arenas.h); 0: unknown
  bool has_forked = false;  // it must not end: the kernel may kill its children then (rt/base/fork.h)

  // -- Idle: guarded by IdleMs' lock while the M is on that list; the waker writes next_* before the note.
  Note note;
  P* next_p = nullptr;         // the P it was woken with, or null
  bool next_spinning = false;  // it was woken to look for work
  M* idle_next = nullptr;
  M* idle_previous = nullptr;
  bool on_idle_list = false;
  bool retires = false;  // it is not needed any more: its thread ends
  bool makes = false;    // it shall create another M, see MMaker

  alignas(64) G g0;
};

}  // namespace tuza::rt
