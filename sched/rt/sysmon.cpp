#include <tuza/sched/rt/sysmon.h>

#include <tuza/sched/rt/check.h>
#include <tuza/sched/rt/clock.h>
#include <tuza/sched/rt/cpu_limit.h>
#include <tuza/sched/rt/idle.h>
#include <tuza/sched/rt/machine_thread.h>
#include <tuza/sched/rt/procs.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/schedtrace.h>

#include <algorithm>
#include <array>

namespace tuza::rt {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kTickMinNs = 1 * kMs;
constexpr std::int64_t kTickMaxNs = 10 * kMs;
constexpr std::int64_t kIdleBeforeSleepNs = 50 * kMs;
constexpr std::int64_t kPollAgeNs = 1 * kMs;
constexpr std::int64_t kScavengeEveryNs = 1000 * kMs;
constexpr std::int64_t kQuotaEveryNs = 10'000 * kMs;
// A goroutine that outlasts a tick: reckon with long runs on its P from now on (rt/ready.cpp).
constexpr std::int64_t kLongRunNs = kTickMinNs;

bool all_idle(const Sched& sched) { return sched.idle_ps.count(std::memory_order_seq_cst) >= sched.procs(); }

}  // namespace

void Sysmon::start(Sched& sched) {
  started_ = start_helper_thread(thread_, "tuza-sysmon", &Sysmon::thread_main, &sched);
  if (!started_) fatal("cannot create the first threads of the runtime");
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

// Sleeps until a P goes to work. False if one did meanwhile.
bool Sysmon::deep_sleep(Sched& sched) {
  asleep_.store(true, std::memory_order_seq_cst);
  if (!all_idle(sched) || stopping_.load(std::memory_order_seq_cst)) {
    asleep_.store(false, std::memory_order_relaxed);
    return false;
  }
  note_.sleep();
  return true;
}

// Wakes an M where a busy P keeps others waiting. True if something had to be done, or may have to be soon.
bool Sysmon::look_after_ps(Sched& sched, std::int64_t now) {
  bool waiting = false;
  for (std::int32_t i = 0, n = sched.procs_made.load(std::memory_order_acquire); i < n; ++i) {
    P& p = sched.p(i);
    const std::uint64_t picks = p.picks.get();
    const bool stuck = picks == seen_picks_[static_cast<std::size_t>(i)];
    seen_picks_[static_cast<std::size_t>(i)] = picks;
    if (sched.idle_ps.contains(i)) continue;
    if (stuck) p.average_run_ns.store(kLongRunNs, std::memory_order_relaxed);
    waiting = waiting || p.queued() > 0;
  }
  waiting = waiting || sched.grq.size() > 0;
  const std::int64_t next = sched.next_timer_ns();
  const bool overdue = next != TimerHeap::kNever && next <= now;
  if (waiting || overdue) wake_one(sched);
  return waiting || overdue;
}

// Lets somebody wait for I/O if nobody has for a while: an idle M if there is a P for it, else the thread of
// the source. True if the role is free, and it may soon be time.
bool Sysmon::hand_over_polling(Sched& sched, std::int64_t now) {
  if (sched.poll.holder() != PollRole::Holder::kNobody || !sched.has_io_waiters()) return false;
  if (now - sched.poll.last_ns() < kPollAgeNs) return true;
  if (sched.any_p_idle()) {
    nudge_idle_m(sched);
  } else if (sched.poll.take(PollRole::Holder::kSourceThread)) {
    sched.poll.source()->take_over();
  }
  return true;
}

void Sysmon::run(Sched& sched) {
  std::int64_t tick_ns = kTickMinNs;
  std::int64_t busy_at = now_ns();
  std::int64_t scavenge_at = busy_at + kScavengeEveryNs;
  std::int64_t quota_at = busy_at + kQuotaEveryNs;
  std::int64_t trace_at = busy_at;
  bool to_scavenge = true;
  const std::int64_t trace_every = sched.debug.schedtrace_ms * kMs;
  while (!stopping_.load(std::memory_order_acquire)) {
    note_.sleep(trace_every > 0 ? std::min(tick_ns, trace_every) : tick_ns);
    ticks_.fetch_add(1, std::memory_order_relaxed);
    const std::int64_t now = now_ns();
    sched.coarse_ns.store(now, std::memory_order_relaxed);
    if (trace_every > 0 && now >= trace_at) {
      print_schedtrace(sched, now);
      trace_at = now + trace_every;
    }
    if (now >= scavenge_at) {
      to_scavenge = sched.gs.scavenge();
      scavenge_at = now + kScavengeEveryNs;
    }
    if (now >= quota_at) {
      if (!sched.procs_fixed.load(std::memory_order_relaxed)) follow_cpu_limit(sched);
      quota_at = now + kQuotaEveryNs;
    }
    if (all_idle(sched)) {
      tick_ns = kTickMaxNs;
      if (now - busy_at >= kIdleBeforeSleepNs && !to_scavenge && trace_every == 0 && deep_sleep(sched)) {
        busy_at = now_ns();
        to_scavenge = true;
        tick_ns = kTickMinNs;
      }
      continue;
    }
    busy_at = now;
    const bool waiting = look_after_ps(sched, now);
    const bool unpolled = hand_over_polling(sched, now);
    tick_ns = waiting || unpolled ? kTickMinNs : std::min(tick_ns * 2, kTickMaxNs);
  }
}

}  // namespace tuza::rt
