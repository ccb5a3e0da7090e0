// Taking the P from a goroutine that does not come back: the handoff protocol.
//
// A goroutine that computes, or blocks in the kernel, keeps its P from the others. Sysmon takes the P and
// gives it to another M. The goroutine is not touched: it runs on, on its own thread, without a P. At its
// next parking call it takes an idle P, or queues in the GRQ: with those that were woken if that is the
// first time since it waited for something, and it has not used 10 ms of CPU; else on the last level, behind
// the new ones. Calls that do not park (go(), unlock) go on without a P: the caller may hold a std::mutex. No
// signal is sent, so nothing in the program notices.
//
//   the M                                    sysmon (take_p)
//   -----                                    ---------------
//   enter: in_rt = 1                         lock M::handoff_mutex
//          compiler barrier                  taken |= kTaking
//          if (taken) slow path              heavy fence
//   ... may use its P ...                    if (in_rt == 0 and the P is still the M's,
//   leave: in_rt = 0 (release)                   and has picked nobody since it was looked at)
//                                               m.p = null, taken = kGone: the P is sysmon's
//   slow path:                               else
//          if (taken & kTaking)                 taken -= kTaking, ask for a yield
//             lock, unlock handoff_mutex     unlock
//          now p is mine, or null
//
// Why a P has one user. The heavy fence (rt/base/heavy_fence.h) stands for a full fence between the M's two
// steps of enter: either sysmon sees in_rt == 1, and gives up; or the M sees kTaking, and waits for the
// decision. in_rt == 0 read with acquire: what the M did with the P before it left has happened. After that
// the M cannot come near the P without the lock that sysmon holds. Where there is no heavy fence, bit kFence
// sends every enter through the slow path, which orders the two steps by itself.
//
// The kernel may refuse the fence later, when the program goes into a sandbox (seccomp). Sysmon then sets kFence on all
// Ms, and tries nothing for kFenceSettleNs: an M that has entered without seeing the bit has its in_rt = 1 in the store
// buffer of its core at most, for nanoseconds, and that buffer is emptied by each interrupt and each switch of threads.
//
// A goroutine that calls the runtime again and again, and never parks, may be inside whenever sysmon looks.
// If it was twice, sysmon sets bit kGive, and the goroutine gives its P away at the beginning of its next
// call.
//
// kGone is set by who takes the P: sysmon, or the M itself (hand_off_own_p), under handoff_mutex. Only the M
// clears it, inside the runtime, when it has a P again or has left the goroutine.
//
// sched/model/handoff.pml is this protocol with suspension (rt/slice/lane.h) in Promela, with what breaks without
// the fence, without the lock, and when the P is used after leave.
#pragma once

#include <tuza/sched/arch/current_m.h>
#include <tuza/sched/arch/held_mutexes.h>
#include <tuza/sched/rt/m.h>
#include <tuza/sched/rt/p.h>

#include <cstdint>

namespace tuza::rt {

struct Sched;

inline constexpr std::int64_t kFenceSettleNs = 10'000'000;

// Sysmon only. Takes `p` from `m` if `m` is in user code and the P has picked nobody since `seen_picks`.
// True: the caller holds the P. False: the goroutine is asked to yield at its next parking call. `why`
// decides what becomes of the goroutine when it comes back.
bool take_p(P& p, M* m, std::uint64_t seen_picks, GoneFor why);

// Sysmon only. There is no heavy fence any more: Ms fence for themselves when they enter.
void demand_fence_on_enter(Sched& sched);

// Sysmon only. The goroutine that `m` runs after `seen_picks` picks yields at its next parking point.
void ask_to_yield(M* m, std::uint64_t seen_picks);

// Sysmon only, after trials that have all found the goroutine inside the runtime: it shall give the P away
// itself when it enters the next time, which it seems to do all the time without ever parking.
void ask_to_give(M* m, std::uint64_t seen_picks);

// The M, inside the runtime with a P, gives it away because its goroutine goes on without.
void hand_off_own_p(M* m);

// What M::yield_asked holds for the goroutine of these picks. Never 0.
inline std::uint32_t yield_mark(std::uint64_t picks) { return static_cast<std::uint32_t>(picks) * 2 + 1; }

// The M has a P again, or has left the goroutine: it runs nothing without a P any more. Inside the runtime.
void leave_lane(M* m);

// A PendingCommit: `g` queues for a P, on the level that it has earned. Its M has none and goes to wait for
// one (schedule_loop), looking at the GRQ first, so nobody else need be woken for this; but one that is
// locked to `g` waits for that alone, and looks nowhere.
bool commit_return(G* g, void* unused);

[[gnu::cold]] void parking_point_slow();

// The first thing in every parking call, before any lock is taken: a goroutine that has lost its P takes one
// or queues for it, one that was asked to yield does so. Parks then. Elsewhere it does nothing.
// (Mutex::lock() has it only where it has to wait.)
inline void parking_point() {
  const M* m = current_m();
  if (m == nullptr) return;
  if ((m->taken.load(std::memory_order_relaxed) | m->yield_asked.load(std::memory_order_relaxed)) != 0 ||
      kChecksMutexes) [[unlikely]]
    parking_point_slow();
}

}  // namespace tuza::rt
