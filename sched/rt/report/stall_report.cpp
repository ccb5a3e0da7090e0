#include <tuza/sched/rt/report/stall_report.h>

#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/report/dump.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/slice/preempt_signal.h>

namespace tuza::rt {
namespace {

constexpr std::int64_t kPatienceNs = 100'000'000;

}  // namespace

void StallReport::consider(Sched& sched, M& m, std::int64_t since_ns, std::int64_t now_ns) {
  const std::int64_t limit = sched.debug.stalls_ns;
  if (limit == 0 || now_ns - since_ns < limit || under_way()) return;
  const G* g = m.current.follow();
  if (g == &m.g0) return;  // the goroutine has come back just now
  if (g->blocking.get() != 0 || m.reported_stall_ns == since_ns) return;
  m.reported_stall_ns = since_ns;
  g_ = g;
  goroutine_ = g->id;
  asked_ns_ = now_ns;
  away_ns_ = now_ns - since_ns;
  answered_.store(false, std::memory_order_relaxed);
  target_.store(&m, std::memory_order_release);  // pairs with answer(): trace_ is free
  if (!sched.preempt_signal.send(m)) print_report(false);
}

void StallReport::answer(M& m) {
  if (target_.load(std::memory_order_acquire) != &m || answered_.load(std::memory_order_relaxed)) return;
  trace_ = backtrace_of_interrupted();
  // Not inside the runtime, where the goroutine may be about to change.
  activity_.size = 0;
  if (m.in_rt.load(std::memory_order_relaxed) == 0 && m.current.get() == g_) activity_.read(*m.current);
  answered_.store(true, std::memory_order_release);
}

void StallReport::finish(std::int64_t now_ns) {
  if (!under_way()) return;
  const bool answered = answered_.load(std::memory_order_acquire);
  if (answered || now_ns - asked_ns_ >= kPatienceNs) print_report(answered);
}

void StallReport::print_report(bool answered) {
  Line line(
      2, Patience::kNone);  // by sysmon: if this line finds no room, the lines that follow do not wait either
  line << "tuza: stall: goroutine " << goroutine_;
  if (const auto name = g_->copy_name(); name.text[0] != '\0' && g_->id == goroutine_)
    line << " (" << name.text << ")";
  line << " has not returned to the scheduler for ";
  line.duration(away_ns_);
  line << (answered ? ":\n" : "; its thread did not respond\n");
  line.flush();
  // Sysmon must not wait for malloc, whose lock the goroutine may hold.
  if (answered && activity_.size > 0) Line(2, Patience::kNone) << "  " << activity_.text() << "\n";
  if (answered) print(trace_, Naming::kAsyncSignalSafe);
  if (g_->id == goroutine_) print_creator(*g_);
  target_.store(nullptr, std::memory_order_relaxed);
}

}  // namespace tuza::rt
