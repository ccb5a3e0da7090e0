#include <tuza/sched/rt/report/schedtrace.h>

#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/report/goroutine_record.h>
#include <tuza/sched/rt/sched.h>

namespace tuza::rt {
namespace {

void print_summary(const Sched& sched, std::int64_t now, Patience patience) {
  const Lane::Counts lane = sched.sysmon.lane().counts();
  Line line(2, patience);
  line << "SCHED " << (now - sched.started_ns) / 1'000'000 << "ms: gomaxprocs=" << sched.procs()
       << " idleprocs=" << sched.idle_ps.count() << " threads=" << sched.ms_live.load()
       << " spinningthreads=" << sched.spinning.load() << " idlethreads=" << sched.idle_ms.size()
       << " wakeups=" << sched.wakeups.load() << " poller=" << name(sched.poll.holder())
       << " handoffs=" << sched.sysmon.slices().taken() << " withdrawn=" << sched.sysmon.slices().withdrawn()
       << " lane=" << lane.seated << " burning=" << lane.burning << " suspended=" << lane.suspended
       << " signals=" << lane.signals << " pileups=" << sched.backlog.number()
       << " runqueue=" << sched.grq.size() << " [";
  for (std::int32_t i = 0; i < sched.procs(); ++i) {
    line << (i == 0 ? "" : " ") << sched.p(i).queued();
  }
  line << "]\n";
}

std::int64_t id_of(const M* m) { return m == nullptr ? -1 : std::int64_t{m->id}; }

void print_ps(const Sched& sched, Patience patience) {
  for (std::int32_t i = 0, n = sched.procs_made.load(); i < n; ++i) {
    const P& p = sched.p(i);
    const char* status = sched.idle_ps.contains(i) ? "idle" : p.retired.load() ? "retired" : "running";
    Line(2, patience) << "  P" << i << ": status=" << status << " schedtick=" << p.tick.get()
                      << " m=" << id_of(p.m.load()) << " runqsize=" << p.woken.size() + p.queue.size()
                      << " runnext=" << (p.runnext.load() != nullptr ? 1 : 0)
                      << " timerslen=" << p.timers.size() << " avgrun=" << p.average_run_ns.load() << "ns\n";
  }
}

void print_ms(const Sched& sched, Patience patience) {
  for (std::uint32_t i = 0, n = sched.ms_made.load(std::memory_order_acquire); i < n; ++i) {
    const M& m = sched.ms[i];
    const G* locked_g = m.locked_g;
    Line(2, patience) << "  M" << i << ": tid=" << m.thread_id.get() << " inruntime=" << m.in_rt.load()
                      << " lockedg=" << (locked_g != nullptr ? locked_g->id.get() : 0) << "\n";
  }
}

void print_gs(const Sched& sched, Patience patience) {
  for (std::size_t i = 0, n = sched.gs.count(); i < n; ++i) {
    const G& g = sched.gs.at(i);
    const GStatus status = g.status.load(std::memory_order_relaxed);
    if (status == GStatus::kDead) continue;
    Line line(2, patience);
    line << "  G" << g.id.get() << ": status=" << shown_status(g);
    if (waits(status)) line << "(" << tuza::name(g.wait_reason) << ")";
    line << " m=" << (status == GStatus::kRunning ? id_of(g.last_m) : -1) << " lockedm=" << id_of(g.locked_m)
         << " " << g.copy_name().text << "\n";
  }
}

}  // namespace

void print_schedtrace(const Sched& sched, std::int64_t now) {
  constexpr auto kPatience = Patience::kNone;  // sysmon calls this, and must not wait
  print_summary(sched, now, kPatience);
  if (!sched.debug.scheddetail) return;
  print_ps(sched, kPatience);
  print_ms(sched, kPatience);
  print_gs(sched, kPatience);
}

void print_sched_state(const Sched& sched) {
  constexpr auto kPatience = Patience::kLong;
  print_summary(sched, now_ns(), kPatience);
  print_ps(sched, kPatience);
  print_ms(sched, kPatience);
}

}  // namespace tuza::rt
