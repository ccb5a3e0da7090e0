#include <tuza/sched/stats.h>

#include <tuza/sched/goroutine.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/park.h>
#include <tuza/sched/rt/sched.h>

#include <algorithm>

namespace tuza {
namespace {

using rt::Sched;

// Wraps each read of the runtime. The runtime's memory stays valid, and the thread is not suspended, as
// always inside the runtime. On a goroutine every read sees the same runtime. On an external thread this
// holds only because `entry` spans all reads.
template <class Look>
void inspect(const rt::ExternalEntry& entry, Look&& look) {
  const rt::Enter rt;
  if (entry.sched() != nullptr) look(*entry.sched());
}

void read_procs(const Sched& sched, SchedStats& stats) {
  // Read ends before starts, as in num_goroutine().
  const std::int32_t n = sched.procs_made.load(std::memory_order_acquire);
  stats.ended = sched.exited_outside.load(std::memory_order_relaxed);
  for (std::int32_t i = 0; i < n; ++i) stats.ended += sched.p(i).exited.get();
  stats.started = sched.spawned_outside.load(std::memory_order_relaxed);
  for (std::int32_t i = 0; i < n; ++i) {
    const rt::P& p = sched.p(i);
    stats.started += p.spawned.get();
    stats.picks += p.picks.get();
    stats.slices += p.tick.get();
    stats.local_queues += p.queued();
  }
  stats.goroutines = stats.started - std::min(stats.started, stats.ended);
}

MachineState state_of(const rt::M& m, const rt::G* g, bool has_p) {
  using enum MachineState;
  if (g == nullptr || g == &m.g0) return has_p ? kScheduling : kIdle;
  if (has_p) return kRunning;
  if (m.suspend.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(rt::Suspend::kStopped)) {
    return kSuspended;
  }
  return g->blocking.get() != 0 ? kBlocked : kLane;
}

MachineStats read_machine(const rt::M& m, int proc) {
  const rt::G* g = m.current.follow();
  const rt::G* locked = m.locked_g;
  MachineStats stats;
  stats.id = m.id;
  stats.thread_id = m.thread_id.get();
  stats.proc = proc;
  stats.state = state_of(m, g, proc >= 0);
  stats.goroutine = g == nullptr ? 0 : g->id.get();  // g0 has id 0
  stats.locked_goroutine = locked == nullptr ? 0 : locked->id.get();
  return stats;
}

}  // namespace

SchedStats sched_stats() {
  SchedStats stats;
  const rt::ExternalEntry entry;
  inspect(entry, [&](Sched& sched) {
    const rt::Lane::Counts lane = sched.sysmon.lane().counts();
    stats.max_procs = sched.procs();
    stats.procs_idle = std::clamp(sched.idle_ps.count(), 0, stats.max_procs);
    stats.threads = sched.ms_live.load(std::memory_order_relaxed);
    stats.threads_idle = sched.idle_ms.size();
    stats.threads_spinning = sched.spinning.load(std::memory_order_relaxed);
    stats.lane = lane.seated;
    stats.lane_computing = lane.burning;
    stats.lane_suspended = lane.suspended;
    stats.poller = name(sched.poll.holder());
    const auto queued = [&sched](rt::Level level) { return sched.grq[level].size(); };
    static_assert(rt::kLevels == 4);
    stats.global_queue = {queued(rt::Level::kLatecomer) + queued(rt::Level::kWoken), queued(rt::Level::kNew),
                          queued(rt::Level::kReturned)};
    read_procs(sched, stats);
    stats.handoffs = sched.sysmon.slices().taken();
    stats.handoffs_withdrawn = sched.sysmon.slices().withdrawn();
    stats.lane_arrivals = lane.arrived;
    stats.suspend_signals = lane.signals;
    stats.wakeups = sched.wakeups.load(std::memory_order_relaxed);
    stats.sysmon_ticks = sched.sysmon.ticks();
    const auto [stacks, bytes] = sched.gs.stacks().carved();
    stats.stacks = stacks;
    stats.stack_bytes = bytes;
    stats.uptime_ns = rt::now_ns() - sched.started_ns;
  });
  return stats;
}

std::vector<ProcStats> proc_stats() {
  const rt::ExternalEntry entry;
  std::vector<ProcStats> all;
  all.reserve(rt::kMaxProcsLimit);  // not inside the runtime: the allocation may take a lock
  inspect(entry, [&](const Sched& sched) {
    for (std::int32_t i = 0, n = sched.procs_made.load(std::memory_order_acquire); i < n; ++i) {
      const rt::P& p = sched.p(i);
      const rt::M* m = p.m.load(std::memory_order_acquire);
      ProcStats& stats = all.emplace_back();
      stats.id = i;
      stats.state = sched.idle_ps.contains(i)                   ? ProcState::kIdle
                    : p.retired.load(std::memory_order_relaxed) ? ProcState::kRetired
                                                                : ProcState::kRunning;
      stats.machine = m == nullptr || stats.state != ProcState::kRunning ? -1 : static_cast<int>(m->id);
      stats.woken = p.woken.size();
      stats.queued = p.queue.size();
      stats.has_next = p.runnext.load(std::memory_order_relaxed) != nullptr;
      stats.picks = p.picks.get();
      stats.slices = p.tick.get();
      stats.timers = p.timers.size();
      stats.average_run_ns = p.average_run_ns.load(std::memory_order_relaxed);
    }
  });
  return all;
}

std::vector<MachineStats> machine_stats() {
  const rt::ExternalEntry entry;
  std::vector<MachineStats> all;
  const std::vector<ProcStats> procs = proc_stats();
  std::uint32_t count = 0;
  inspect(entry, [&](const Sched& sched) { count = sched.ms_made.load(std::memory_order_acquire); });
  std::vector<int> proc_of(count, -1);
  for (const ProcStats& p : procs) {
    if (p.machine >= 0 && static_cast<std::uint32_t>(p.machine) < count) {
      proc_of[static_cast<std::size_t>(p.machine)] = p.id;
    }
  }
  all.reserve(count);
  inspect(entry, [&](const Sched& sched) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const rt::M& m = sched.ms[i];
      if (m.thread_id.get() != 0) all.push_back(read_machine(m, proc_of[i]));
    }
  });
  return all;
}

GoroutineCounts count_goroutines() {
  constexpr std::size_t kAtOnce = 256;  // about 20 us if none of them is in the cache
  GoroutineCounts counts;
  const rt::ExternalEntry entry;
  std::size_t at = 0, end = 0;
  do {
    inspect(entry, [&](const Sched& sched) {
      end = sched.gs.count();
      for (std::size_t n = 0; n < kAtOnce && at < end; ++n, ++at) {
        const rt::G& g = sched.gs.at(at);
        switch (g.status.load(std::memory_order_relaxed)) {
          case rt::GStatus::kDead: break;
          case rt::GStatus::kRunnable: ++counts.runnable; break;
          case rt::GStatus::kRunning: ++counts.running; break;
          case rt::GStatus::kPinned:
          case rt::GStatus::kWaiting:
            ++counts.waiting;
            ++counts.waiting_for[std::min(static_cast<std::size_t>(g.wait_reason.get()), kWaitReasons - 1)];
            break;
        }
      }
    });
    if (at < end && rt::current_g() != nullptr) yield();
  } while (at < end);
  return counts;
}

const char* name(ProcState state) {
  switch (state) {
    case ProcState::kIdle: return "idle";
    case ProcState::kRunning: return "running";
    case ProcState::kRetired: return "retired";
  }
  return "corrupt";
}

const char* name(MachineState state) {
  switch (state) {
    case MachineState::kIdle: return "idle";
    case MachineState::kScheduling: return "scheduling";
    case MachineState::kRunning: return "running";
    case MachineState::kLane: return "lane";
    case MachineState::kBlocked: return "blocked";
    case MachineState::kSuspended: return "suspended";
  }
  return "corrupt";
}

}  // namespace tuza
