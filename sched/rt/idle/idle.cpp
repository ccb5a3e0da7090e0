// The parking protocol: how Ms without work go idle, and how they are woken.
//
// The problem. Too many awake threads burn CPU; too few leave work waiting. All state is distributed (a queue
// per P), so no thread sees at once that there is work in one place and an idle P in another, and a wake-up
// costs tens of microseconds. An M that goes to sleep while work is submitted elsewhere must not be the M
// that was meant to run that work.
//
// The protocol, after Go's (runtime/proc.go, "Worker thread parking/unparking"):
//
//   submitter                               M that goes idle
//   ---------                               ----------------
//   S1  make the work visible               I1  put its P into idle_ps
//       (GRQ size, first timer)             I2  spinning -= 1, if it was spinning
//   S2  if no P is idle: done               I3  check all sources again; if there is work,
//   S3  if any M spins: done                    take a P and continue
//   S4  spinning 0 -> 1, take an idle P,    I4  sleep
//       wake an M with both
//
// S2 reads the bits of idle_ps and not its count, which lags behind the bits. With the count, S4 and S2 would
// retry for as long as the thread that will correct the count is descheduled. Surplus Ps (rt/idle/procs.h) do
// not count as idle here; a thread that makes a surplus P idle empties it, and checks for work afterwards.
//
// S1, S2, S3, I1, I2 and I3's loads of the GRQ size and the timers are sequentially consistent. Each side
// writes first and reads afterwards, and all these operations have a single total order. (On x86 the writes
// are locked instructions, full barriers.) With weaker orders, both sides could read the value from before
// the other's write.
//
// Why no work is lost. Suppose the submitter wakes no M, and the M sleeps.
//   - The submitter stopped at S2, because it did not see this P idle. Then S2 came before I1 in that order,
//     so S1 came before I3, which saw the work.
//   - The submitter stopped at S3, because it saw this M still spinning. Then S3 came before I2, so S1 came
//     before I3 again.
//   - The submitter stopped at S3, because it saw another M spinning. That M finds the work, or goes through
//     I1-I3 itself later.
//   - The submitter stopped at S3, because it saw another submitter in S4. That submitter wakes an M, which
//     checks all sources. Or it finds no idle P left: then it lowers the count and starts again at S2, on
//     behalf of the submitters that relied on it. Giving up there would lose work: after the scan of idle_ps,
//     the P may have been put back by an M whose I3 came before the S1 of a relying submitter.
//
// An M that stops spinning because it found work (stop_spinning) checks for more after lowering the count, on
// behalf of submitters that stopped at S3 meanwhile, and wakes the next M.
//
// Work that the holder of a P puts into its own queue need not be submitted this way. The holder is awake and
// returns to its queue. Waking other Ms for that work affects speed only (wake_if_it_pays), and sysmon
// handles a holder that stays away.
//
// S4 without an idle M: the P goes back to idle_ps, and the maker of Ms is asked for an M. The maker looks as a submitter
// does, and provides one if there is still work and an idle P. That M checks all sources before it sleeps, which is I3 for
// this submitter.
//
// Idle Ms and time. One waiting M watches the first timer: the M in the poller, or else the first to sleep.
// Other Ms that would wake for the same or a later timer sleep without a timeout (timer watch). An event
// makes the watching M busy; from then on sysmon watches the timers in its place.
//
// sched/model/parking.pml models this protocol in Promela. It also shows what breaks without I3, with I3
// before I2, and with weaker orders on either side.
#include <tuza/sched/rt/idle/idle.h>

#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/idle/machine_thread.h>
#include <tuza/sched/rt/idle/procs.h>
#include <tuza/sched/rt/queue/ready.h>
#include <tuza/sched/rt/queue/schedule.h>
#include <tuza/sched/rt/report/deadlock.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/rt/testing/fake_time.h>

#include <algorithm>
#include <utility>

namespace tuza::rt {
// Whether an M that checks now would find work: "all sources" of step I3. (The local queues are checked for
// speed only; their holders are awake.)
bool work_visible(const Sched& sched) {
  if (sched.grq.size(std::memory_order_seq_cst) > 0) return true;
  for (std::int32_t i = 0, n = sched.procs_made.load(std::memory_order_acquire); i < n; ++i) {
    if (!sched.p(i).queues_empty()) return true;
  }
  const std::int64_t next = sched.next_timer_ns(std::memory_order_seq_cst);
  return next != TimerHeap::kNever && next <= now_ns();
}

namespace {

// Announces that this M will wake up by itself at `when_ns`, unless another M already wakes up earlier.
class TimerWatch {
 public:
  TimerWatch(std::atomic<std::int64_t>& watch, std::int64_t when_ns) : watch_(watch), mine_(when_ns) {
    // seq_cst, against the destructor. This M has read the timers and then looks for a watcher; an M that
    // wakes up withdraws its watch and then reads the timers. Either this M sees that no M watches any more,
    // or the other M sees the timer for which this M relies on it.
    std::int64_t seen = watch_.load(std::memory_order_seq_cst);
    while (mine_ < seen && !(holds_ = watch_.compare_exchange_weak(seen, mine_))) {
    }
  }
  ~TimerWatch() {
    if (holds_) watch_.compare_exchange_strong(mine_, TimerHeap::kNever);
  }
  TimerWatch(const TimerWatch&) = delete;
  TimerWatch& operator=(const TimerWatch&) = delete;

  // How long to wait for the timer; negative: for ever, because another M watches or there is no timer.
  [[nodiscard]] std::int64_t timeout_ns() const {
    if (!holds_) return -1;
    const std::int64_t left = mine_ - now_ns();
    return left > 0 ? left : 0;
  }

 private:
  std::atomic<std::int64_t>& watch_;
  std::int64_t mine_;
  bool holds_ = false;
};

// Blocks in the I/O source, as holder of the poll role.
void wait_in_poller(M* m, std::int64_t timeout_ns) {
  Sched& sched = *m->sched;
  GList ready;
  sched.poll.source()->poll(timeout_ns, ready);
  const std::int64_t now = now_ns();
  sched.coarse_ns.store(now, std::memory_order_relaxed);
  sched.poll.polled(now);
  const bool has_p = !ready.empty() && acquire_p(m);
  sched.io_waits_ended(m->p, ready.size());
  if (has_p) {
    put_last_in_order(sched, *m->p, m, std::move(ready), Level::kWoken);
    wake_if_it_pays(sched, *m->p);
  } else {
    inject(sched, std::move(ready), Level::kWoken);
  }
  sched.poll.give_back();  // last: a thread that finds the role free knows that nothing is in transit
}

// An M without a P may wait in the poller only while some P is idle. While all Ps are busy, events can wait
// until one of their Ms polls; waking one more thread would cost two context switches per event.
bool may_poll(Sched& sched) {
  return sched.any_p_idle() && sched.has_io_waiters() && sched.poll.take(PollRole::Holder::kM);
}

// When this M should wake up by itself for a timer. Never while no P is idle: the M could do nothing then,
// and busy Ms and sysmon take care of the timers. A thread that makes a P idle performs I3 afterwards.
std::int64_t next_timer_for_idle(const Sched& sched) {
  return sched.any_p_idle() ? sched.next_timer_ns(std::memory_order_seq_cst) : TimerHeap::kNever;
}

// A spare M prepares for its first goroutine after this time (allow_programs()).
constexpr std::int64_t kSpareNs = 20'000'000;
std::int64_t soon(std::int64_t timeout_ns) {
  return timeout_ns < 0 ? kSpareNs : std::min(timeout_ns, kSpareNs);
}

// Sleeps on the note, as a member of the list of idle Ms.
void sleep_idle(M* m, std::int64_t timeout_ns) {
  IdleMs& idle = m->sched->idle_ms;
  idle.push(m);
  has_started(m);
  // The stop is announced before the idle Ms are woken: either the stopping thread finds this M, or this M
  // sees the announcement.
  if (m->sched->stopping.load(std::memory_order_seq_cst) && idle.remove(m)) return;
  const bool woken = m->note.sleep(timeout_ns);
  // If this M is still on the list, no thread has taken it: the sleep timed out, or the runtime ends. If it
  // is off the list but was not woken, the wake is in transit.
  if (!idle.remove(m) && !woken) m->note.sleep();
  // When the runtime ends every note is woken, also those of Ms that another thread has taken off the list
  // and is about to write next_p for. That P is no longer needed.
  if (m->sched->stopping.load(std::memory_order_acquire)) return;
  m->sched->coarse_ns.store(now_ns(), std::memory_order_relaxed);
  m->spinning = std::exchange(m->next_spinning, false);
  if (P* p = std::exchange(m->next_p, nullptr); p != nullptr) hold_p(m, p);
}

}  // namespace

void wake_with_p(M* m, P* p, bool spinning) {
  m->next_p = p;
  m->next_spinning = spinning;
  m->note.wake();
}

void wake_one(Sched& sched) {
  int id = -1;
  do {
    if (!sched.any_p_idle()) return;  // S2
    std::uint32_t nobody = 0;
    if (sched.spinning.load(std::memory_order_seq_cst) != 0 ||  // S3
        !sched.spinning.compare_exchange_strong(nobody, 1, std::memory_order_seq_cst)) {
      return;
    }
    id = sched.idle_ps.take_any(-1, sched.procs());  // S4
    if (id < 0) sched.spinning.fetch_sub(1, std::memory_order_seq_cst);
  } while (id < 0);
  sched.sysmon.p_busy();
  P* p = &sched.p(id);
  M* m = sched.idle_ms.pop();
  if (m == nullptr) {
    put_idle(sched, p);
    sched.spinning.fetch_sub(1, std::memory_order_seq_cst);
    sched.maker.request(MMaker::Request::kRunOne);
    return;
  }
  sched.maker.taken(sched.idle_ms.size(), sched.ms_live.load(std::memory_order_relaxed));
  sched.wakeups.fetch_add(1, std::memory_order_relaxed);
  wake_with_p(m, p, true);
}

void hand_off_p(Sched& sched, P* p) {
  const bool work = p->queued() > 0 || sched.grq.size() > 0;
  M* m = work ? sched.idle_ms.pop() : nullptr;
  if (m != nullptr) {
    sched.maker.taken(sched.idle_ms.size(), sched.ms_live.load(std::memory_order_relaxed));
    wake_with_p(m, p, false);
    return;
  }
  // An idle P has no holder that returns to its queue, so its goroutines go where submitted work goes.
  empty_queues(sched, *p);
  put_idle(sched, p);  // I1
  if (work_visible(sched)) return wake_one(sched);
  // The M that gives up this P does not wait for timers and I/O, so an idle M must.
  const bool unwatched = sched.next_timer_ns(std::memory_order_seq_cst) < sched.timer_watch_ns.load() ||
                         (sched.has_io_waiters() && sched.poll.holder() == PollRole::Holder::kNobody);
  // If the P was taken from an M, its goroutine may have parked before the P was idle: that M has looked too early. Either
  // it sees the P idle, or this thread sees that kGone is cleared (seq_cst in leave_lane() and in stands_still()).
  if (unwatched || stands_still(sched)) nudge_idle_m(sched);
}

void nudge_idle_m(Sched& sched) {
  if (M* m = sched.idle_ms.pop(); m != nullptr) {
    m->note.wake();
  } else {
    sched.maker.request(MMaker::Request::kLook);
  }
}

void retire_idle_ms(Sched& sched, std::uint32_t keep) {
  for (std::uint32_t unused = sched.idle_ms.take_low_water(); unused > keep; --unused) {
    M* m = sched.idle_ms.pop_coldest();
    if (m == nullptr) return;
    m->retires = true;
    m->note.wake();
  }
}

void stop_spinning(M* m) {
  Sched& sched = *m->sched;
  m->spinning = false;
  sched.spinning.fetch_sub(1, std::memory_order_seq_cst);
  if (sched.grq.size(std::memory_order_seq_cst) > 0) {
    wake_one(sched);
  } else {
    wake_if_it_pays(sched, *m->p);
  }
}

void has_started(M* m) {
  if (!m->starting) return;
  m->starting = false;
  m->sched->maker.m_has_started();
}

void starts_with_work(M* m) {
  has_started(m);
  m->sched->maker.request(MMaker::Request::kRefill);
}

bool go_idle(M* m) {
  Sched& sched = *m->sched;
  put_idle(sched, release_p(m));  // I1
  if (m->spinning) {              // I2
    m->spinning = false;
    sched.spinning.fetch_sub(1, std::memory_order_seq_cst);
  }
  sched.maker.end_set_up(sched);
  return wait_for_p(m);
}

bool wait_for_p(M* m) {
  Sched& sched = *m->sched;
  while (!sched.stopping.load(std::memory_order_acquire)) {
    if (work_visible(sched) && acquire_p(m)) {  // I3
      try_spinning(m);
      return true;
    }
    if (FakeTime::pass(m)) return true;
    if (!m->has_forked && sched.maker.ends_surplus(sched)) {
      has_started(m);
      nudge_idle_m(sched);  // as below
      return false;
    }
    {
      const TimerWatch watch(sched.timer_watch_ns, next_timer_for_idle(sched));
      if (may_poll(sched)) {
        wait_in_poller(m, watch.timeout_ns());
      } else {
        report_deadlock_if_any(sched);
        sleep_idle(m, m->may_run_programs ? watch.timeout_ns() : soon(watch.timeout_ns()));  // I4
      }
    }  // the watch ends here: what follows may take long, or rely on another M for the timers
    if (m->p != nullptr) return true;
    // As in sleep_idle(): the thread that took this M off the list may be about to write the fields below.
    if (sched.stopping.load(std::memory_order_acquire)) return false;
    if (!m->may_run_programs) allow_programs(m);
    if (m->makes || m->retires) nudge_idle_m(sched);  // this M may have watched the first timer
    if (std::exchange(m->makes, false)) sched.maker.help(sched);
    if (std::exchange(m->retires, false) && !m->has_forked) return false;
  }
  return false;
}

}  // namespace tuza::rt
