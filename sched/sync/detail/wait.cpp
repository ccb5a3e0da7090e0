#include <tuza/sched/sync/detail/wait.h>

#include <tuza/sched/arch/cpu_relax.h>
#include <tuza/sched/detail/clock_source.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/fork.h>
#include <tuza/sched/rt/base/futex.h>
#include <tuza/sched/rt/g.h>
#include <tuza/sched/rt/park.h>
#include <tuza/sched/rt/queue/g_list_inline.h>
#include <tuza/sched/sync/detail/event.h>

#include <algorithm>
#include <utility>

namespace tuza::rt {
namespace {

constexpr std::int64_t kFakeTimeLookNs = 1'000'000;
constexpr std::int64_t kNapNs = 50'000;

}  // namespace

void WaitQueue::push_back(Waiter& w) {
  w.queued = true;
  w.next = nullptr;
  w.prev = tail_;
  (tail_ == nullptr ? head_ : tail_->next) = &w;
  tail_ = &w;
}

void WaitQueue::push_front(Waiter& w) {
  w.queued = true;
  w.prev = nullptr;
  w.next = head_;
  (head_ == nullptr ? tail_ : head_->prev) = &w;
  head_ = &w;
}

void WaitQueue::remove(Waiter& w) {
  TUZA_CHECK(w.queued);
  (w.prev == nullptr ? head_ : w.prev->next) = w.next;
  (w.next == nullptr ? tail_ : w.next->prev) = w.prev;
  w.queued = false;
}

Waiter* WaitQueue::claim_first() {
  while (head_ != nullptr) {
    Waiter& w = *head_;
    remove(w);
    if (w.wait->claim(w)) return &w;
  }
  return nullptr;
}

Wait::Wait() : g_(current_g()) {}

void Wait::wake() {
  G* const g = g_;  // the Wait may be gone after the next step
  const std::uint32_t before = state_.fetch_or(kWoken, std::memory_order_acq_rel);
  if (g == nullptr) {
    futex_wake(state_, 1);  // uses only the address as a number, and reads nothing there
  } else if ((before & kParked) != 0) {
    ready(g);
  }
}

void Wait::wake_last() {
  G* const g = g_;
  const std::uint32_t before = state_.fetch_or(kWoken, std::memory_order_acq_rel);
  if (g == nullptr) {
    futex_wake(state_, 1);
  } else if ((before & kParked) != 0) {
    g->win();
    GList one;
    one.push_back(g);
    ready(std::move(one));
  }
}

bool Wait::commit(G*, void* self) {
  auto& state = static_cast<Wait*>(self)->state_;
  return (state.fetch_or(kParked, std::memory_order_acq_rel) & kWoken) == 0;
}

void Wait::sleep(WaitReason reason) {
  if (g_ != nullptr) {
    PendingWait pending{kWithdrawal, this};
    if (!woken()) park(&Wait::commit, this, reason, &pending);
    return;
  }
  for (;;) {
    const std::uint32_t seen = state_.load(std::memory_order_acquire);
    if ((seen & kWoken) != 0) return;
    if (is_forked_child()) refuse_in_forked_child();  // nobody would wake it
    futex_wait(state_, seen);
  }
}

void Wait::on_timer(Timer& timer) {
  auto& wait = *static_cast<Wait*>(timer.argument);
  const std::uint32_t before = wait.state_.fetch_or(kClaimed | kTimerFired, std::memory_order_acq_rel);
  if ((before & kClaimed) == 0) wait.wake_last();
}

// The deadline of a goroutine is a timer on its stack: the timer must be stopped, or over, when this
// returns.
void Wait::sleep_with_timer(std::int64_t deadline_ns, WaitReason reason) {
  Timer timer;
  timer.function = &Wait::on_timer;
  timer.argument = this;
  clock_arm(timer, deadline_ns);
  sleep(reason);
  if (clock_stop(timer)) return;
  for (int i = 0; (state_.load(std::memory_order_acquire) & kTimerFired) == 0; ++i) {
    if (i < 100) {
      cpu_relax();
    } else {
      yield();  // the kernel has stopped the thread in the middle of on_timer()
    }
  }
}

// The deadline of a thread. With a fake clock the thread checks the time regularly, since fake time passes
// at an unknown speed.
void Wait::sleep_until(std::int64_t deadline_ns) {
  for (;;) {
    const std::uint32_t seen = state_.load(std::memory_order_acquire);
    if ((seen & kWoken) != 0) return;
    const std::int64_t now = clock_now_ns();
    const std::int64_t left =
        deadline_ns <= now ? 0 : deadline_ns - now;  // the difference alone may overflow
    if (left <= 0 && claim_for_end()) return;
    const std::int64_t nap = clock_is_fake() ? std::min(left, kFakeTimeLookNs) : left;
    futex_wait(state_, seen, left <= 0 ? -1 : nap);  // claimed already: a wake is on its way
  }
}

bool Wait::claim_for_end() { return (state_.fetch_or(kClaimed, std::memory_order_acq_rel) & kClaimed) == 0; }

// -- The end of the runtime.

constinit const Withdrawal Wait::kWithdrawal{&Wait::withdraw_claim, &Wait::withdraw_places};

// If the wait has already been claimed, the claimant is an external thread on its way to wake(), and
// afterwards to ready() if the goroutine was parked by then: a few instructions.
void Wait::withdraw_claim(G& g, void* self) {
  auto& wait = *static_cast<Wait*>(self);
  if (wait.claim_for_end()) return;
  for (;;) {
    const std::uint32_t seen = wait.state_.load(std::memory_order_acquire);
    const bool to_be_readied = (seen & kParked) != 0 && waits(g.status.load(std::memory_order_acquire));
    if ((seen & kWoken) != 0 && !to_be_readied) return;
    std::atomic<std::uint32_t> nobody_wakes{0};
    futex_wait(nobody_wakes, 0, kNapNs);
  }
}

bool Wait::withdraw_places(void* self) {
  auto& wait = *static_cast<Wait*>(self);
  bool forgotten = true;
  for (Waiter *place = wait.places_, *next = nullptr; place != nullptr; place = next) {
    next = place->sibling;  // leave() may destroy `place`
    const bool served = place == wait.winner_;
    if (place->leave != nullptr) {
      place->leave(*place, served ? Waiter::Outcome::kServed : Waiter::Outcome::kUnserved);
    } else if (!served) {
      forgotten = false;
    }
  }
  return forgotten;
}

Waiter* Wait::block(WaitReason reason, const Until& until) {
  Waiter end(*this, leave<&Event::remove>, until.event);
  if (until.event == nullptr) places_ = end.sibling;
  if (until.event != nullptr && !until.event->add(end)) {
    if (claim_for_end()) return nullptr;
    sleep(reason);  // the wait has been served in the meantime
    return winner_;
  }
  if (until.deadline_ns == Until::kNever) {
    sleep(reason);
  } else if (g_ != nullptr) {
    sleep_with_timer(until.deadline_ns, reason);
  } else {
    sleep_until(until.deadline_ns);
  }
  if (until.event != nullptr) until.event->remove(end);
  places_ = end.sibling;
  return winner_ == &end ? nullptr : winner_;
}

}  // namespace tuza::rt
