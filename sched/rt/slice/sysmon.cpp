#include <tuza/sched/rt/slice/sysmon.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/base/fork.h>
#include <tuza/sched/rt/base/kernel_slice.h>
#include <tuza/sched/rt/idle/idle.h>
#include <tuza/sched/rt/idle/machine_thread.h>
#include <tuza/sched/rt/idle/procs.h>
#include <tuza/sched/rt/report/deadlock.h>
#include <tuza/sched/rt/report/schedtrace.h>
#include <tuza/sched/rt/sched.h>

#include <algorithm>

namespace tuza::rt {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kTickCallNs = kMs / 50;
constexpr std::int64_t kTickWatchNs = kMs / 4;
constexpr std::int64_t kTickMinNs = 1 * kMs;
constexpr std::int64_t kTickBusyNs = 2 * kMs;  // also while the lane must be scanned
constexpr std::int64_t kDeepSleepMinNs = 10 * kMs;
constexpr std::int64_t kTickIdleNs = 2 * kMs;  // a goroutine may begin to compute at any moment
constexpr std::int64_t kIdleBeforeSleepNs = 50 * kMs;
// Threads of the lane that wait in the kernel tell nobody when they begin to compute.
constexpr std::int64_t kLaneLookMinNs = 10 * kMs;
constexpr std::int64_t kLaneLookMaxNs = 320 * kMs;
constexpr std::int64_t kPollIdleNs = 1 * kMs;
constexpr std::int64_t kSecondNs = 1000 * kMs;
constexpr std::int64_t kTrimEveryNs = 100 * kMs;
constexpr std::uint32_t kIdleMsKept = 8;

// An M with a surplus P is busy, too.
bool all_idle(const Sched& sched) {
  return sched.idle_ps.count(std::memory_order_seq_cst) >= sched.procs() &&
         sched.surplus_held.load(std::memory_order_seq_cst) == 0;
}

}  // namespace

void Sysmon::start(Sched& sched) {
  lane_.prepare();
  const int error = start_helper_thread<&Sysmon::thread_main>(thread_, "tuza-sysmon", &sched);
  if (error != 0) no_first_thread("sysmon", error);
  started_ = true;
}

void Sysmon::stop() {
  if (!started_) return;
  stopping_.store(true, std::memory_order_seq_cst);
  note_.wake();
  join_helper_thread(thread_);
  started_ = false;
}

void* Sysmon::thread_main(void* argument) {
  auto* sched = static_cast<Sched*>(argument);
  sched->sysmon.run(*sched);
  return nullptr;
}

void Sysmon::wake() {
  asleep_.store(false, std::memory_order_relaxed);
  note_.wake();
}

// Sleeps until a P becomes busy, a thread of the lane computes that must be watched, stacks of waiting goroutines may be
// trimmed, or memory and threads that nobody needs may be given back. Meanwhile looks at the lane and at a standstill, for as
// long as they last.
Sysmon::Slept Sysmon::deep_sleep(Sched& sched) {
  asleep_.store(true, std::memory_order_seq_cst);
  if (!all_idle(sched) || stopping_.load(std::memory_order_seq_cst)) {
    asleep_.store(false, std::memory_order_relaxed);
    return Slept::kNot;
  }
  std::int64_t now = now_ns();
  const std::int64_t trim_at = idle_stacks_.trim_all(sched, now);
  std::int64_t until = trim_at == 0 ? TimerHeap::kNever : std::max(trim_at, now + kDeepSleepMinNs);
  if (to_scavenge_) until = std::min(until, std::max(every_second_at_, now + kDeepSleepMinNs));
  Slept slept = Slept::kUntilNeeded;
  std::int64_t lane_pause = kLaneLookMinNs;
  std::int64_t lane_at = lane_.harmless(sched) ? TimerHeap::kNever : now + lane_pause;
  for (;; now = now_ns()) {
    const std::int64_t deadlock_at = sched.deadlock_watch.due_ns();
    const std::int64_t next = std::min({until, deadlock_at, lane_at});
    if (note_.sleep(next == TimerHeap::kNever ? -1 : std::max<std::int64_t>(next - now, 0))) break;
    if (next == until) {
      slept = Slept::kUntilDue;
      break;
    }
    if (next == deadlock_at) {
      look_for_deadlock_again(sched);
      if (sched.deadlock_watch.due_ns() == TimerHeap::kNever) break;
    } else {
      ticks_.fetch_add(1, std::memory_order_relaxed);
      lane_.scan(sched, now_ns());
      if (!lane_.waits(sched)) break;
      lane_pause = std::min(lane_pause * 2, kLaneLookMaxNs);
      lane_at = now_ns() + lane_pause;
    }
  }
  asleep_.store(false, std::memory_order_relaxed);
  return slept;
}

// Wakes an M for work that lies behind a busy P, or belongs to no P. True if there is such work, and a P is
// idle.
bool Sysmon::wake_for_work(Sched& sched, std::int64_t now) {
  if (!sched.any_p_idle()) return false;
  bool waiting = sched.grq.size() > 0;
  for (std::int32_t i = 0, n = sched.procs_made.load(std::memory_order_acquire); i < n && !waiting; ++i) {
    waiting = sched.p(i).queued() > 0 && !sched.idle_ps.contains(i);
  }
  const std::int64_t next = sched.next_timer_ns();
  const bool overdue = next != TimerHeap::kNever && next <= now;
  if (waiting || overdue) wake_one(sched);
  return waiting || overdue;
}

// If nobody has polled for a while, chooses a thread to wait for I/O: an idle M if a P is idle, else the I/O
// source's thread. True if a P is idle and polling may soon be overdue. (While all Ps are busy, those that
// make progress poll, and slices_ sees one that does not.)
bool Sysmon::hand_over_polling(Sched& sched, std::int64_t now) {
  if (sched.poll.holder() != PollRole::Holder::kNobody || !sched.has_io_waiters()) return false;
  if (now - sched.poll.last_ns() < kPollIdleNs) return sched.any_p_idle();
  if (sched.any_p_idle()) {
    nudge_idle_m(sched);
    return true;
  }
  if (sched.poll.take(PollRole::Holder::kSourceThread)) sched.poll.source()->take_over();
  return false;
}

// Work that is not needed at every tick.
void Sysmon::chores(Sched& sched, std::int64_t now) {
  const std::int64_t trace_every = sched.debug.schedtrace_ms * kMs;
  if (trace_every > 0 && now >= trace_at_) {
    print_schedtrace(sched, now);
    trace_at_ = now + trace_every;
  }
  if (now >= every_second_at_) {
    to_scavenge_ = sched.gs.scavenge();
    sched.maker.forget_demand(sched);
    const auto keep = static_cast<std::uint32_t>(sched.procs()) + sched.maker.spare() + kIdleMsKept;
    retire_idle_ms(sched, keep);
    to_scavenge_ = to_scavenge_ || sched.idle_ms.size() > keep;
    // acquire, with a store of false after cpu_limit was changed.
    if (!sched.procs_fixed.load(std::memory_order_acquire)) follow_cpu_limit(sched);
    every_second_at_ = now + kSecondNs;
  }
  if (now >= trim_at_) {
    idle_stacks_.trim_some(sched, now);
    trim_at_ = now + kTrimEveryNs;
  }
  sched.stalls.finish(now);
  if (now >= sched.deadlock_watch.due_ns()) look_for_deadlock_again(sched);
}

// The next tick: immediate if something is urgent, increasingly late if nothing is.
std::int64_t Sysmon::next_tick(Slices::Pace pace, bool waiting) {
  switch (pace) {
    case Slices::Pace::kCall: return kTickCallNs;
    case Slices::Pace::kWatch: return kTickWatchNs;
    case Slices::Pace::kSoon: return kTickMinNs;
    case Slices::Pace::kBusy: return waiting ? kTickMinNs : std::min(tick_ns_ * 2, kTickBusyNs);
    case Slices::Pace::kIdle: break;  // a P is on its way to an M
  }
  return waiting ? kTickMinNs : std::min(tick_ns_ * 2, kTickBusyNs);
}

void Sysmon::run(Sched& sched) {
  hint_kernel_slice(0, kSysmonKernelSliceNs);
  std::int64_t busy_at = now_ns();
  every_second_at_ = busy_at + kSecondNs;
  trace_at_ = busy_at;
  const std::int64_t trace_every = sched.debug.schedtrace_ms * kMs;
  while (!stopping_.load(std::memory_order_acquire)) {
    note_.sleep(trace_every > 0 ? std::min(tick_ns_, trace_every) : tick_ns_);
    ticks_.fetch_add(1, std::memory_order_relaxed);
    const std::int64_t now = now_ns();
    sched.coarse_ns.store(now, std::memory_order_relaxed);
    chores(sched, now);
    sched.maker.find_help(sched, now);
    lane_.scan(sched, now);
    update_backlog(sched, now);
    if (all_idle(sched)) {
      tick_ns_ = kTickIdleNs;
      const bool may_sleep = now - busy_at >= kIdleBeforeSleepNs && trace_every == 0 && lane_.waits(sched) &&
                             !sched.backlog.lasts();
      const Slept slept = may_sleep ? deep_sleep(sched) : Slept::kNot;
      if (slept != Slept::kNot) tick_ns_ = kTickMinNs;
      if (slept == Slept::kUntilNeeded) {
        busy_at = now_ns();
        to_scavenge_ = true;
      }
      continue;
    }
    busy_at = now;
    const Slices::Pace pace = slices_.scan(sched, now);
    const bool waiting = wake_for_work(sched, now);
    const bool unpolled = hand_over_polling(sched, now);
    tick_ns_ = next_tick(pace, waiting || unpolled);
    if (forking_thread() != 0) tick_ns_ = kTickWatchNs;
  }
  lane_.release_all();
}

}  // namespace tuza::rt
