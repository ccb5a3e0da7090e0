#include <tuza/sched/rt/slice/slices.h>

#include <tuza/sched/rt/base/thread_cpu.h>
#include <tuza/sched/rt/base/thread_state.h>
#include <tuza/sched/rt/idle/idle.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/rt/testing/chaos.h>

#include <algorithm>

namespace tuza::rt {
namespace {

// A goroutine that runs longer than this marks its P as one with long runs (rt/queue/ready.cpp).
constexpr std::int64_t kLongRunNs = 1'000'000;
// After this many attempts that found the goroutine inside the runtime, the goroutine gives its P away
// itself.
constexpr std::uint32_t kRefusalsMax = 2;
// A goroutine whose thread has been blocked this long, without a marked call, is assumed to block for longer.
constexpr std::int64_t kBlockedNs = 50'000;
// After an unmarked blocking call, others are likely to follow: sysmon scans as often as for marked calls,
// for this long.
constexpr std::int64_t kBlockersNs = 10'000'000;
// After a goroutine kept others waiting, others are likely to follow: sysmon scans every millisecond, for
// this long.
constexpr std::int64_t kStallsNs = 100'000'000;
// Sysmon also scans every millisecond if slices are shorter than this.
constexpr std::int64_t kShortSliceNs = 8'000'000;
// After this many consecutive results that a thread waits for a core, /proc is read in only one of this many
// scans.
constexpr std::uint32_t kCoreWaitsMost = 8;
// If an early handoff is at least this far off, the next scan need not come at the watching interval.
constexpr std::int64_t kLongWaitNs = 1'000'000;
// If nobody has polled for this long while goroutines wait for I/O, some of them may be ready.
constexpr std::int64_t kUnpolledNs = 4'000'000;

// The most urgent kind of waiting goroutine that belongs to no P; kNobody if a P is free.
Waits who_waits(const Sched& sched, std::int64_t now) {
  if (sched.any_p_idle()) return Waits::kNobody;
  const std::int64_t next = sched.next_timer_ns();
  if (sched.grq[Level::kLatecomer].size() + sched.grq[Level::kWoken].size() > 0 ||
      (next != TimerHeap::kNever && next <= now))
    return Waits::kWoken;
  if (sched.poll.holder() == PollRole::Holder::kNobody && now - sched.poll.last_ns() >= kUnpolledNs &&
      sched.has_io_waiters()) {
    return Waits::kWoken;
  }
  return sched.grq.size() > 0 ? Waits::kAnybody : Waits::kNobody;
}

// An early handoff costs some 100 us, to the goroutine itself and to the others. It was wasted if the
// goroutine would have come back within this much CPU time.
constexpr std::int64_t kWithdrawnNs = 1'000'000;
// Longer than this: the goroutine blocked, and others used the P meanwhile
constexpr std::int64_t kWithdrawnWallNs = 10'000'000;
constexpr std::int64_t kEarlyMostTimes = 4;

std::uint32_t queued_anywhere(const Sched& sched) {
  std::uint32_t queued = sched.grq.size();
  for (std::int32_t i = 0, n = sched.procs_made.load(std::memory_order_acquire); i < n; ++i) {
    queued += sched.p(i).queued();
  }
  return queued;
}

std::atomic<bool> g_ask_before_taking{false};

}  // namespace

bool ask_before_taking() {
  g_ask_before_taking.store(true, std::memory_order_relaxed);
  return true;
}

std::int64_t Slices::early_ns(const Sched& sched) const {
  return sched.slice.early_ns + early_more_ns_.load(std::memory_order_relaxed);
}

// Both functions update early_more_ns_ without a lock: an occasional lost update does not matter.
void Slices::early_handoff(const Sched& sched) {
  const std::int64_t more = early_more_ns_.load(std::memory_order_relaxed);
  early_more_ns_.store(std::max<std::int64_t>(more - sched.slice.early_ns / 16, 0),
                       std::memory_order_relaxed);
}

void Slices::came_back(const Sched& sched, std::int64_t wall_ns, std::int64_t cpu_ns) {
  if (cpu_ns >= kWithdrawnNs || wall_ns >= kWithdrawnWallNs) return;
  const std::int64_t most = std::min(sched.slice.early_ns * kEarlyMostTimes, sched.slice.slice_ns);
  const std::int64_t more = early_more_ns_.load(std::memory_order_relaxed) + sched.slice.early_ns / 4;
  early_more_ns_.store(
      std::clamp<std::int64_t>(more, 0, std::max<std::int64_t>(most - sched.slice.early_ns, 0)),
      std::memory_order_relaxed);
}

// Called for a thread that has used little CPU. /proc is read rarely if recent reads only said that threads
// wait for a core, as they do beside other busy programs. The price: there, a thread that blocks has its P
// taken early only after up to 6 ms.
bool Slices::waits_for_core(const M& m, Seen& seen) {
  if (seen.core_waits >= kCoreWaitsMost) {
    ++seen.core_waits;
    if (seen.core_waits % kCoreWaitsMost != 0) return true;
  }
  if (!thread_is_runnable(m.thread_id, true)) {
    seen.core_waits = 0;
    return false;
  }
  if (seen.core_waits < kCoreWaitsMost) ++seen.core_waits;
  return true;
}

// /proc is not read for a thread that has used a quarter of a CPU since the last scan: reading it costs 10
// us, the CPU clock less than one.
Slices::Use Slices::use_of_cpu(const M& m, Seen& seen, std::int64_t now) {
  const std::int64_t cpu = thread_cpu_ns(m.cpu_clock);
  const bool computes = (cpu - seen.cpu_ns) * 4 >= now - seen.cpu_at_ns;
  seen.cpu_ns = cpu;
  seen.cpu_at_ns = now;
  if (computes) return Use::kComputes;
  return waits_for_core(m, seen) ? Use::kWaitsForCore : Use::kBlocks;
}

// Skipped if the thread spent most of that time waiting for a core: beside other programs, short goroutines
// would be mistaken for long ones again and again, and Ms would be woken for goroutines that are next anyway.
void Slices::note_long_run(P& p, const M& m, Seen& seen, std::int64_t stuck_ns) {
  if (p.average_run_ns.load(std::memory_order_relaxed) >= kLongRunNs) return;
  if ((thread_cpu_ns(m.cpu_clock) - seen.began_cpu_ns) * 2 < stuck_ns && waits_for_core(m, seen)) return;
  p.average_run_ns.store(kLongRunNs, std::memory_order_relaxed);
}

bool Slices::take(Sched& sched, P& p, M* m, G& g, Seen& seen, GoneFor why, std::int64_t now) {
  if (!take_p(p, m, seen.picks, why)) {
    withdrawn_.fetch_add(1, std::memory_order_relaxed);
    if (++seen.refused >= kRefusalsMax) ask_to_give(m, seen.picks);
    return false;
  }
  taken_.fetch_add(1, std::memory_order_relaxed);
  if (why == GoneFor::kEarly) early_handoff(sched);
  sched.sysmon.lane().arrive(m);
  const std::uint32_t queued = queued_anywhere(sched);
  if (seen.call == 0) {
    g.waits_begun = 0;
    const bool latecomer = p.latecomer_pick.get() == seen.picks;
    sched.backlog.note_stall(latecomer, sched.sysmon.lane().stalled(), queued, now);
  }
  sched.maker.end_set_up(sched);
  // The waiting goroutines may run as long as this one. With checkpoints, they yield.
  if (!g_ask_before_taking.load(std::memory_order_relaxed)) sched.maker.expect(queued);
  chaos::dawdle();
  hand_off_p(sched, &p);
  return true;
}

Slices::Pace Slices::scan_p(Sched& sched, P& p, Seen& seen, Waits others, std::int64_t now) {
  M* m = p.m.load(std::memory_order_acquire);
  if (m == nullptr || sched.idle_ps.contains(p.id)) {
    seen.since_ns = 0;
    return Pace::kIdle;
  }
  const bool waits = others != Waits::kNobody || (p.queued() > 0 && !sched.any_p_idle());
  const std::uint64_t picks = p.picks.get();
  // The P's goroutine does not change while the pick count stays the same. (If the count has just changed,
  // take_p() notices.)
  G* g = m->current.follow();
  const std::uint32_t call = g->blocking.get() > 0 ? g->calls.get() : 0;
  if (picks != seen.picks || seen.since_ns == 0) {
    seen = Seen{.picks = picks, .since_ns = now, .call = call, .core_waits = seen.core_waits};
    seen.cpu_ns = seen.began_cpu_ns = thread_cpu_ns(m->cpu_clock);
    seen.cpu_at_ns = now;
    if (!waits) return Pace::kBusy;
    if (call != 0) stalled_at_ns_ = now;
    if (call != 0 || now - blocked_at_ns_ < kBlockersNs) return Pace::kCall;
    return now - stalled_at_ns_ < kStallsNs || sched.slice.slice_ns < kShortSliceNs ? Pace::kSoon
                                                                                    : Pace::kBusy;
  }
  const std::int64_t stuck_ns = now - seen.since_ns;
  if (stuck_ns >= kLongRunNs) note_long_run(p, *m, seen, stuck_ns);
  const bool same_call = call != 0 && call == seen.call;
  seen.call = call;
  const bool ask = waits && call == 0 && stuck_ns >= kBlockedNs && sched.slice.early_ns > 0;
  const Use use = ask ? use_of_cpu(*m, seen, now) : Use::kUnknown;
  const bool blocks = use == Use::kBlocks;
  if (use == Use::kComputes || blocks || (waits && same_call) || stuck_ns >= sched.slice.slice_ns) {
    stalled_at_ns_ = now;
  }
  const bool early = waits && sched.slice.early_ns > 0 && stuck_ns >= early_ns(sched);
  const bool used_up = stuck_ns >= sched.slice.slice_ns || blocks || early || (waits && same_call);
  const bool urgent = others == Waits::kWoken || !p.woken.empty();
  if ((used_up || urgent) && !seen.asked && call == 0 && !blocks &&
      g_ask_before_taking.load(std::memory_order_relaxed)) {
    seen.asked = true;
    ask_to_yield(m, picks);
    return Pace::kWatch;
  }
  const GoneFor why = blocks || call != 0                ? GoneFor::kOther
                      : stuck_ns >= sched.slice.slice_ns ? GoneFor::kSlice
                                                         : GoneFor::kEarly;
  if (used_up && take(sched, p, m, *g, seen, why, now)) {
    seen.since_ns = 0;
    if (blocks) blocked_at_ns_ = now;
    return same_call || blocks ? Pace::kCall : Pace::kWatch;
  }
  if (!waits) return Pace::kSoon;
  // Nothing to do before the thread has a core again, or before the early handoff is due.
  if (use == Use::kWaitsForCore && !used_up) return Pace::kBusy;
  if (use == Use::kComputes && early_ns(sched) - stuck_ns >= kLongWaitNs) return Pace::kSoon;
  return call != 0 || now - blocked_at_ns_ < kBlockersNs ? Pace::kCall : Pace::kWatch;
}

Slices::Pace Slices::scan(Sched& sched, std::int64_t now) {
  Pace pace = Pace::kIdle;
  for (std::int32_t i = 0, n = sched.procs_made.load(std::memory_order_acquire); i < n; ++i) {
    const Waits others = who_waits(sched, now);
    pace = std::max(pace, scan_p(sched, sched.p(i), seen_[static_cast<std::size_t>(i)], others, now));
  }
  return pace;
}

}  // namespace tuza::rt
