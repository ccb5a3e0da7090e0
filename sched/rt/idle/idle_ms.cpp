#include <tuza/sched/rt/idle/idle_ms.h>

#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/base/kernel_slice.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/base/thread_limit.h>
#include <tuza/sched/rt/idle/idle.h>
#include <tuza/sched/rt/idle/machine_thread.h>
#include <tuza/sched/rt/report/thread_exhaustion.h>
#include <tuza/sched/rt/sched.h>

#include <algorithm>
#include <utility>

namespace tuza::rt {
namespace {

// A thread creation that takes this long is stuck: it normally takes some tens of microseconds, unless it
// waits for a lock.
constexpr std::int64_t kStuckNs = 1'000'000;
constexpr std::int64_t kLimitCheckNs = 5'000'000;

}  // namespace

void IdleMs::push(M* m) {
  const LockGuard lock(mutex_);
  if (m->fresh) {
    m->idle_next = nullptr;
    m->idle_previous = bottom_;
    (bottom_ != nullptr ? bottom_->idle_next : top_) = m;
    bottom_ = m;
  } else {
    m->idle_previous = nullptr;
    m->idle_next = top_;
    (top_ != nullptr ? top_->idle_previous : bottom_) = m;
    top_ = m;
  }
  m->on_idle_list = true;
  size_.fetch_add(1, std::memory_order_relaxed);
}

M* IdleMs::pop() {
  const LockGuard lock(mutex_);
  M* m = top_;
  if (m != nullptr) unlink(m);
  return m;
}

M* IdleMs::pop_coldest() {
  const LockGuard lock(mutex_);
  M* m = bottom_;
  if (m != nullptr) unlink(m);
  return m;
}

M* IdleMs::pop_fresh() {
  const LockGuard lock(mutex_);
  M* m = bottom_;
  if (m == nullptr || !m->fresh) return nullptr;
  unlink(m);
  return m;
}

std::uint32_t IdleMs::take_low_water() {
  const LockGuard lock(mutex_);
  return std::exchange(low_water_, size_.load(std::memory_order_relaxed));
}

bool IdleMs::remove(M* m) {
  const LockGuard lock(mutex_);
  if (!m->on_idle_list) return false;
  unlink(m);
  return true;
}

void IdleMs::unlink(M* m) {
  (m->idle_previous != nullptr ? m->idle_previous->idle_next : top_) = m->idle_next;
  (m->idle_next != nullptr ? m->idle_next->idle_previous : bottom_) = m->idle_previous;
  m->idle_next = m->idle_previous = nullptr;
  m->on_idle_list = false;
  const std::uint32_t left = size_.fetch_sub(1, std::memory_order_relaxed) - 1;
  low_water_ = std::min(low_water_, left);
}

void MMaker::start(Sched& sched) {
  const int error = start_helper_thread<&MMaker::thread_main>(thread_, "tuza-maker", &sched);
  if (error != 0) no_first_thread("the maker of others", error);
  started_ = true;
}

void MMaker::stop() {
  if (!started_) return;
  stopping_.store(true, std::memory_order_release);
  note_.wake();
  join_helper_thread(thread_);
  started_ = false;
}

void* MMaker::thread_main(void* argument) {
  auto* sched = static_cast<Sched*>(argument);
  sched->maker.run(*sched);
  return nullptr;
}

bool MMaker::make_one(Sched& sched) {
  if (sched.ms_live.load() >= sched.max_threads.load()) return false;
  creating_since_ns_.store(now_ns(), std::memory_order_relaxed);
  const int error = start_one(sched);
  creating_since_ns_.store(0, std::memory_order_relaxed);
  if (error == 0) return true;
  // The existing Ms must suffice: wake the M that waits in the poller.
  if (sched.poll.holder() == PollRole::Holder::kM) sched.poll.source()->wake();
  Line text(Line::kNowhere);
  text << "tuza: cannot create another thread for goroutines; continuing with fewer: ";
  explain_refused_thread(text, error);
  refused_.log(LogLevel::kWarning, text.text());
  return false;
}

// Returns 0 or an errno.
int MMaker::start_one(Sched& sched) {
  starting_.fetch_add(1, std::memory_order_relaxed);
  made_.fetch_add(1, std::memory_order_relaxed);
  const int error = start_m(sched);
  if (error == 0) {
    any_made_.store(true, std::memory_order_relaxed);
  } else {
    if (!any_made_.load(std::memory_order_relaxed)) no_first_thread("one for goroutines", error);
    starting_.fetch_sub(1, std::memory_order_relaxed);
  }
  return error;
}

bool MMaker::is_stuck(std::int64_t now) const {
  const std::int64_t since = creating_since_ns_.load(std::memory_order_relaxed);
  return since != 0 && now - since >= kStuckNs;
}

bool MMaker::wants_more(const Sched& sched) const {
  const std::uint32_t live = sched.ms_live.load(std::memory_order_relaxed);
  return sched.idle_ms.size() + starting_.load(std::memory_order_relaxed) < spare() &&
         live < ahead_max_.load(std::memory_order_relaxed) &&
         live < sched.max_threads.load(std::memory_order_relaxed) &&
         !sched.stopping.load(std::memory_order_relaxed);
}

void MMaker::help(Sched& sched) {
  if (!is_stuck(now_ns()) || !wants_more(sched) || helping_.exchange(true)) return;
  // While this M counted as starting, the maker may have seen enough. It is to meet the system's limit, too.
  if (start_one(sched) != 0) request(Request::kRefill);
  helping_ = false;
}

void MMaker::find_help(Sched& sched, std::int64_t now) {
  if (!is_stuck(now) || !wants_more(sched) || helping_) return;
  if (M* m = sched.idle_ms.pop_fresh(); m != nullptr) {
    m->makes = true;
    m->note.wake();
  }
}

void MMaker::end_set_up_if_main_waits(const Sched& sched) {
  const G* main = sched.main_g.load(std::memory_order_acquire);
  if (main == nullptr) return;
  if (waits(main->status.load(std::memory_order_relaxed)) || sched.main_goexited.load()) allow_spares();
}

void MMaker::allow_spares() {
  setting_up_.store(false, std::memory_order_relaxed);
  ahead_max_.store(kNoMax, std::memory_order_relaxed);
  request(Request::kRefill);
}

void MMaker::forget_demand(Sched& sched) {
  if (setting_up_.load(std::memory_order_relaxed)) return allow_spares();
  constexpr std::uint32_t kSecondsFull = 60;
  if (ahead_max_.load(std::memory_order_relaxed) == kNoMax) {
    seconds_full_.store(0, std::memory_order_relaxed);
  } else if (seconds_full_.fetch_add(1, std::memory_order_relaxed) + 1 == kSecondsFull) {
    ahead_max_.store(kNoMax, std::memory_order_relaxed);
    surplus_.store(0, std::memory_order_relaxed);
  } else {
    end_those_above_max(sched);  // some may have been made since because work waited
  }
  if (made_.exchange(0, std::memory_order_relaxed) != 0) return;
  spare_.store(std::max(spare_.load(std::memory_order_relaxed) / 4, kSpareMin), std::memory_order_relaxed);
}

void MMaker::expect(std::uint32_t waiting) {
  const std::uint32_t enough = std::min(waiting + kSpareMin, kSpareMax);
  const std::uint32_t before = spare_.load(std::memory_order_relaxed);
  const std::uint32_t now = std::min(before + kSparePerHandoff, enough);
  if (now == before) return;
  spare_.store(now, std::memory_order_relaxed);
  if (now > before) request(Request::kRefill);
}

// Makes Ms until the wanted number is idle, or the system refuses one.
void MMaker::refill(Sched& sched) {
  while (wants_more(sched)) {
    if (!make_one(sched)) return leave_room(sched);
  }
}

void MMaker::leave_room(Sched& sched) {
  const std::uint32_t live = sched.ms_live.load(std::memory_order_relaxed);
  ahead_max_.store(live - std::min(live, kRoom), std::memory_order_relaxed);
  end_those_above_max(sched);
}

// Ends Ms that are idle, and others when they become idle. The maker and sysmon call it, and the later count holds. (One that
// already ends may still be counted. Then one too many ends, which costs its making.)
void MMaker::end_those_above_max(Sched& sched) {
  const std::uint32_t live = sched.ms_live.load(std::memory_order_relaxed);
  surplus_.store(live - std::min(live, ahead_max_.load(std::memory_order_relaxed)),
                 std::memory_order_relaxed);
  while (sched.idle_ms.size() > 1 && ends_surplus(sched)) {
    if (M* m = sched.idle_ms.pop_coldest(); m != nullptr) {
      m->retires = true;
      m->note.wake();
    }
  }
}

// One idle M stays besides: it runs what becomes ready, and watches the timers.
bool MMaker::ends_surplus(const Sched& sched) {
  std::uint32_t left = surplus_.load(std::memory_order_relaxed);
  while (left > 0 && sched.idle_ms.size() > 0) {
    if (surplus_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

// While the program sets itself up, an M that is on its way comes before another is made: sysmon may have asked for a
// second one because the first took its time.
bool MMaker::one_suffices_and_comes() const {
  return setting_up_.load(std::memory_order_relaxed) && starting_.load(std::memory_order_acquire) > 0;
}

// The requester found no idle M, but an M may have gone idle since, after it had checked for work, or one that was just
// made may have done the work. One that still comes may have checked before there was work, and goes idle then: look
// again. At the limit, one of the existing Ms may still be about to do the work. The program ends only if the shortage
// lasts.
bool MMaker::bring_one(Sched& sched, bool only_for_work) {
  constexpr int kChecks = 20;
  for (int i = 0; i < kChecks && !stopping_.load(std::memory_order_acquire); ++i) {
    if (M* m = sched.idle_ms.pop(); m != nullptr) {
      m->note.wake();
      return true;
    }
    // In this order: an M that no longer comes has taken its goroutine, which lacks_one() then does not see any more.
    const bool one_comes = one_suffices_and_comes();
    if (only_for_work && !lacks_one(sched)) return true;
    if (sched.ms_live.load() >= sched.max_threads.load()) {
      if (!work_waits(sched)) return true;
    } else if (!one_comes) {
      return make_one(sched);
    }
    note_.sleep(kLimitCheckNs);
  }
  if (stopping_.load(std::memory_order_acquire)) return true;
  if (sched.ms_live.load() < sched.max_threads.load()) return make_one(sched);
  report_thread_exhaustion(sched);
}

// Whether there is something to do, or nobody waits for I/O, while a P is idle.
bool MMaker::work_waits(const Sched& sched) {
  const bool unpolled = sched.poll.holder() == PollRole::Holder::kNobody && sched.has_io_waiters();
  return sched.any_p_idle() && (work_visible(sched) || unpolled);
}

// Whether an M that was asked for is still missing: there is something to do or to wait for, and nobody does.
bool MMaker::lacks_one(const Sched& sched) {
  const bool unwatched =
      sched.next_timer_ns(std::memory_order_seq_cst) < sched.timer_watch_ns.load(std::memory_order_seq_cst);
  return work_waits(sched) || (unwatched && sched.any_p_idle());
}

void MMaker::run(Sched& sched) {
  hint_kernel_slice(0, kWorkerKernelSliceNs);  // the threads that the maker creates inherit it
  constexpr std::int64_t kRetryNs = 10'000'000;
  constexpr std::int64_t kJoinMaxNs = 1'000'000'000;
  std::int64_t join_ns = kRetryNs;  // the delay before the next attempt to join terminating threads
  while (!stopping_.load(std::memory_order_acquire)) {
    const bool to_join = sched.ended_threads.join_some() > 0;
    const std::uint32_t requests = requests_.exchange(0, std::memory_order_acq_rel);
    if (requests == 0) {
      note_.sleep(to_join ? join_ns : -1);
      join_ns = std::min(join_ns * 2, kJoinMaxNs);
      continue;
    }
    join_ns = kRetryNs;
    sched.preempt_signal.report();
    bool made = true;
    const auto is_asked = [requests](Request what) {
      return (requests & static_cast<std::uint32_t>(what)) != 0;
    };
    if (is_asked(Request::kRunOne) || is_asked(Request::kLook)) {
      made = bring_one(sched, !is_asked(Request::kLook));
    }
    if (made) {
      refill(sched);
    } else {
      note_.sleep(kRetryNs);
      if (lacks_one(sched)) requests_.fetch_or(requests, std::memory_order_acq_rel);
    }
  }
}

}  // namespace tuza::rt
