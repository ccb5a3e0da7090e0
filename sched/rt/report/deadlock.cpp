#include <tuza/sched/rt/report/deadlock.h>

#include <tuza/sched/external.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/base/foreign_threads.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/idle/idle.h>
#include <tuza/sched/rt/report/dump.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/testing/fake_time.h>

#include <cstdlib>

namespace tuza {
namespace rt {
namespace {

// Whether nothing but a timer could make a goroutine runnable, as seen without locks. Every transition in
// progress shows in one of these fields: a P that is held or handed over is not idle; the goroutines that the
// poller found are queued before the role is given back; an M that was woken to look for work is spinning, or
// holds a P soon afterwards.
bool none_on_the_way(const Sched& sched) {
  return sched.idle_ps.count(std::memory_order_seq_cst) >= sched.procs() &&
         sched.surplus_held.load(std::memory_order_seq_cst) == 0 &&
         sched.grq.size(std::memory_order_seq_cst) == 0 &&
         sched.spinning.load(std::memory_order_seq_cst) == 0 && !sched.has_io_waiters() &&
         sched.external_wakers.load(std::memory_order_seq_cst) == 0 &&
         !sched.stopping.load(std::memory_order_seq_cst);
}

bool timers_pend(const Sched& sched) {
  return sched.next_timer_ns(std::memory_order_seq_cst) != TimerHeap::kNever;
}

// Also true if no goroutine is left and main has ended by goexit: then nothing can end the program any more.
bool all_goroutines_wait(const Sched& sched) {
  bool any = sched.main_goexited.load();
  for (std::size_t i = 0, n = sched.gs.count(); i < n; ++i) {
    const G& g = sched.gs.at(i);
    switch (g.status.load(std::memory_order_acquire)) {
      case GStatus::kRunnable:
      case GStatus::kRunning: return false;
      case GStatus::kPinned:
      case GStatus::kWaiting: any = any || !g.system; break;
      case GStatus::kDead: break;
    }
  }
  return any;
}

// The goroutine of such an M may just have parked, without having published yet what will wake it.
bool any_runs_without_p(const Sched& sched) {
  for (std::uint32_t i = 0, n = sched.ms_made.load(std::memory_order_acquire); i < n; ++i) {
    if ((sched.ms[i].taken.load(std::memory_order_seq_cst) & taken::kGone) != 0) return true;
  }
  return false;
}

// Grows with each goroutine that runs. Exact while none does: an M adds to it before it makes its P idle.
std::uint64_t all_picks(const Sched& sched) {
  std::uint64_t picks = 0;
  for (std::int32_t i = 0, n = sched.procs_made.load(std::memory_order_acquire); i < n; ++i) {
    picks += sched.p(i).picks.get();
  }
  return picks;
}

// The caller has found a standstill. Whether it is one for ever. `picks` was read before it was found.
bool for_ever(Sched& sched, std::uint64_t picks) {
  return !foreign_threads_exist() && stands_still(sched) && all_picks(sched) == picks;
}

}  // namespace

bool stands_still(Sched& sched) {
  if (!none_on_the_way(sched) || work_visible(sched)) return false;
  if (sched.poll.holder() != PollRole::Holder::kNobody) {
    // A thread still waits in the poller for goroutines that no longer wait. It would never leave the poller
    // by itself; once woken, it comes here and decides.
    sched.poll.source()->wake();
    return false;
  }
  if (any_runs_without_p(sched)) return false;
  return all_goroutines_wait(sched) && none_on_the_way(sched);
}

void report_deadlock_if_any(Sched& sched) {
  const std::uint64_t picks = all_picks(sched);
  if (FakeTime::installed() == nullptr &&
      (timers_pend(sched) || sched.deadlock_watch.covers(picks, now_ns()))) {
    return;
  }
  const FakeTime::Turn turn = FakeTime::turn();  // prevents fake time from passing meanwhile
  if (!stands_still(sched)) return;
  if (FakeTime::could_pass()) {
    // The caller could not make fake time pass: its thread ends, or waits for one goroutine only. Real timers
    // do not delay fake time.
    nudge_idle_m(sched);
    return;
  }
  if (timers_pend(sched)) return;
  if (!for_ever(sched, picks)) {
    sched.deadlock_watch.watch(picks, now_ns());
    sched.sysmon.wake_if_asleep();
    return;
  }
  if (sched.deadlock_reported.exchange(true)) return;
  print_last_words();
  Line() << "fatal error: all goroutines are asleep - deadlock!\n"
         << (sched.main_goexited.load() ? "(the main goroutine has ended by goexit)\n" : "");
  print_all_goroutines(sched);
  std::_Exit(2);
}

void look_for_deadlock_again(Sched& sched) {
  sched.deadlock_watch.looks();
  const std::uint64_t picks = all_picks(sched);
  // What ends a standstill makes Ms busy, which look for themselves before they sleep.
  if (timers_pend(sched) || !stands_still(sched)) return;
  if (for_ever(sched, picks)) {
    nudge_idle_m(sched);
  } else {
    sched.deadlock_watch.watch(picks, now_ns());
  }
}

}  // namespace rt

ExternalWaker::ExternalWaker() {
  const rt::ExternalEntry entry;
  if (entry.sched() == nullptr) return;
  run_number_ = entry.sched()->run_number;
  entry.sched()->external_wakers.fetch_add(1, std::memory_order_seq_cst);
}

ExternalWaker::~ExternalWaker() {
  if (run_number_ == 0) return;
  const rt::Enter rt;  // nudge_idle_m() takes a lock of the runtime
  const rt::ExternalEntry entry;
  rt::Sched* sched = entry.sched();
  // Compares by number, not by address: another runtime may have been mapped at the same address.
  if (sched == nullptr || sched->run_number != run_number_) return;
  // If the last promise is gone, the program may be deadlocked: let an M check.
  if (sched->external_wakers.fetch_sub(1, std::memory_order_seq_cst) == 1) rt::nudge_idle_m(*sched);
}

}  // namespace tuza
