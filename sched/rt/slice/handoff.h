// The handoff protocol: take the P from a goroutine that holds it for too long.
//
// A goroutine that computes, or blocks in the kernel, keeps its P from the others. Sysmon takes the P and
// gives it to another M. The goroutine itself is not touched: it continues on its own thread, without a P. At
// its next parking call it takes an idle P, or queues in the GRQ. It queues with the woken goroutines if this
// is its first return since it last waited, and it has used less than 10 ms of CPU. Otherwise it queues on
// the last level, behind the new goroutines. Calls that do not park (go(), unlock) continue without a P: the
// caller may hold a std::mutex. No signal is sent, so nothing in the program notices.
//
//   the M                                    sysmon (take_p)
//   -----                                    ---------------
//   enter: in_rt = 1                         lock M::handoff_mutex
//          compiler barrier                  taken |= kTaking
//          if (taken) slow path              heavy fence
//   ... may use its P ...                    if (in_rt == 0, the P is still the M's,
//   leave: in_rt = 0 (release)                   and its pick count is unchanged since the scan)
//                                               m.p = null, taken = kGone: the P is sysmon's
//   slow path:                               else
//          if (taken & kTaking)                 taken -= kTaking, ask for a yield
//             lock, unlock handoff_mutex     unlock
//          now p is mine, or null
//
// Why a P has only one user. The heavy fence (rt/base/heavy_fence.h) stands for a full fence between the M's
// two steps of enter. Either sysmon sees in_rt == 1, and gives up; or the M sees kTaking, and waits for the
// decision. Sysmon reads in_rt == 0 with acquire: whatever the M did with the P before it left has happened.
// After that the M cannot touch the P without the lock that sysmon holds. Without a heavy fence, bit kFence
// sends every enter through the slow path, which orders the two steps by itself.
//
// The kernel may start to refuse the fence when the program enters a sandbox (seccomp). Sysmon then sets
// kFence on all Ms, and attempts nothing for kFenceSettleNs. An M that entered without seeing the bit can
// have its in_rt = 1 only in the store buffer of its core, for nanoseconds; each interrupt and each thread
// switch drains that buffer.
//
// A goroutine that calls the runtime again and again, and never parks, may be inside the runtime at every
// scan. After two such scans sysmon sets bit kGive, and the goroutine gives its P away at the beginning of
// its next call.
//
// kGone is set under handoff_mutex by the thread that takes the P: sysmon, or the M itself (hand_off_own_p).
// Only the M clears it, inside the runtime, when it has a P again or has left the goroutine.
//
// sched/model/handoff.pml models this protocol, with suspension (rt/slice/lane.h), in Promela. It shows what
// breaks without the fence, without the lock, and when the P is used after leave.
#pragma once

#include <tuza/sched/arch/current_m.h>
#include <tuza/sched/arch/held_mutexes.h>
#include <tuza/sched/rt/m.h>
#include <tuza/sched/rt/p.h>

#include <cstdint>

namespace tuza::rt {

struct Sched;

inline constexpr std::int64_t kFenceSettleNs = 10'000'000;

// Sysmon only. Takes `p` from `m` if `m` is in user code and the P's pick count is still `seen_picks`. True:
// the caller holds the P. False: the goroutine is asked to yield at its next parking call. `why` decides
// where the goroutine queues when it comes back.
bool take_p(P& p, M* m, std::uint64_t seen_picks, GoneFor why);

// Sysmon only. The heavy fence is no longer available: from now on each M fences when it enters.
void demand_fence_on_enter(Sched& sched);

// Sysmon only. The goroutine that `m` runs at pick count `seen_picks` yields at its next parking point.
void ask_to_yield(M* m, std::uint64_t seen_picks);

// Sysmon only, after repeated attempts that found the goroutine inside the runtime. The goroutine gives the P
// away itself at its next enter; it seems to enter all the time without ever parking.
void ask_to_give(M* m, std::uint64_t seen_picks);

// The M, inside the runtime with a P, gives the P away because its goroutine continues without one.
void hand_off_own_p(M* m);

// The value of M::yield_asked for the goroutine of this pick count. Never 0.
inline std::uint32_t yield_mark(std::uint64_t picks) { return static_cast<std::uint32_t>(picks) * 2 + 1; }
// A value of M::yield_asked that is nobody's mark: parking_point() takes a look.
constexpr std::uint32_t kLookMark = 2;

// The M has a P again, or has left the goroutine: it no longer runs a goroutine without a P. Called inside
// the runtime.
void leave_lane(M* m);

// A PendingCommit: `g` queues for a P, on the level that it has earned. Its M has no P and goes to wait for
// one (schedule_loop); it scans the GRQ first, so no other M need be woken. An M that is locked to `g` is the
// exception: it waits for `g` alone and scans nothing, so another M is woken.
bool commit_return(G* g, void* unused);

[[gnu::cold]] void parking_point_slow();

// The first step of every parking call, before any lock is taken. First, an action that is due before the goroutine
// parks runs (before_park.h). A goroutine that has lost its P takes one
// or queues for it; a goroutine that was asked to yield does so. Both may park. Otherwise it does nothing.
// (Mutex::lock() calls it only when it has to wait.)
inline void parking_point() {
  const M* m = current_m();
  if (m == nullptr) return;
  if ((m->taken.load(std::memory_order_relaxed) | m->yield_asked.load(std::memory_order_relaxed)) != 0 ||
      checks_held_mutexes()) [[unlikely]]
    parking_point_slow();
}

}  // namespace tuza::rt
