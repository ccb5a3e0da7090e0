#include <tuza/sched/sync/detail/select_core.h>

#include <tuza/sched/detail/deadline.h>
#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/base/random.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/slice/handoff.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <vector>

namespace tuza::rt {
namespace {

using Kind = SelectCase::Kind;

constexpr std::size_t kNone = ~std::size_t{0};

// Uniform in [0, bound). Inside the runtime. Threads that are not Ms have no generator of their own: they
// share a counter, and mix the value they get. Relaxed because only the counter's value matters.
std::uint32_t random_below(const Enter& rt, std::uint32_t bound) {
  if (M* m = rt.m(); m != nullptr) return m->random.below(bound);
  static std::atomic<std::uint64_t> count{0};
  Random random(count.fetch_add(1, std::memory_order_relaxed) + 1);
  random.next();
  return random.below(bound);
}

class Selection {
 public:
  Selection(std::span<SelectCase* const> cases, std::span<SelectCase*> scratch);
  std::size_t run();

 private:
  void sort();
  void lock_all() const;
  void unlock_all() const;
  [[nodiscard]] static bool looks_ready(const SelectCase& c);
  [[nodiscard]] bool perform(SelectCase& c);
  [[nodiscard]] std::size_t take_ready(const Enter& rt);
  [[nodiscard]] std::size_t wait();

  const std::span<SelectCase* const> cases_;
  // The first active_ cases are those that can become ready, sorted by address of the lock.
  const std::span<SelectCase*> by_lock_;
  std::size_t active_ = 0;
  std::size_t otherwise_ = kNone;
  std::size_t after_ = kNone;  // the case with the shortest timeout
  Waiter* served_ = nullptr;   // to be woken after unlocking
  bool sends_on_closed_ = false;
};

Selection::Selection(std::span<SelectCase* const> cases, std::span<SelectCase*> scratch)
    : cases_(cases), by_lock_(scratch) {
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SelectCase& c = *cases[i];
    c.number = i;
    switch (c.kind) {
      case Kind::kRecv:
      case Kind::kSend:
      case Kind::kSource:
        if (c.lock != nullptr) by_lock_[active_++] = &c;
        break;
      case Kind::kAfter:
        if (after_ == kNone || c.timeout_ns < cases[after_]->timeout_ns) after_ = i;
        break;
      case Kind::kOtherwise:
        if (otherwise_ != kNone) fatal("select: more than one otherwise()");
        otherwise_ = i;
        break;
    }
  }
  sort();
}

void Selection::sort() {
  const auto before = [](const SelectCase* a, const SelectCase* b) {
    return std::less<SpinLock*>()(a->lock, b->lock);
  };
  if (active_ == 2) {  // the most common size
    if (before(by_lock_[1], by_lock_[0])) std::swap(by_lock_[0], by_lock_[1]);
  } else if (active_ > 2) {
    std::ranges::sort(by_lock_.first(active_), before);
  }
}

// Not analysed, nor is what runs under these locks: the analysis knows no set of locks.
void Selection::lock_all() const TUZA_NO_THREAD_SAFETY_ANALYSIS {
  const SpinLock* last = nullptr;
  for (SelectCase* c : by_lock_.first(active_)) {
    if (c->lock == last) continue;
    c->lock->lock();
    last = c->lock;
  }
}

void Selection::unlock_all() const TUZA_NO_THREAD_SAFETY_ANALYSIS {
  const SpinLock* last = nullptr;
  for (SelectCase* c : by_lock_.first(active_)) {
    if (c->lock == last) continue;
    last = c->lock;
    c->lock->unlock();
  }
}

bool Selection::looks_ready(const SelectCase& c) TUZA_NO_THREAD_SAFETY_ANALYSIS {
  switch (c.kind) {
    case Kind::kRecv: return c.chan->may_recv();
    case Kind::kSend: return c.chan->may_send();
    case Kind::kSource: return c.source_ready(c.source);
    case Kind::kAfter:
    case Kind::kOtherwise: break;
  }
  return false;
}

// False: the waiters that made the case look ready were claimed elsewhere, and the case no longer looks
// ready.
bool Selection::perform(SelectCase& c) TUZA_NO_THREAD_SAFETY_ANALYSIS {
  ChanCore::Attempt attempt = ChanCore::Attempt::kDone;
  if (c.kind == Kind::kRecv) {
    attempt = c.chan->recv_now(c.slot, served_);
    c.got_element = attempt == ChanCore::Attempt::kDone;
  } else if (c.kind == Kind::kSend) {
    attempt = c.chan->send_now(c.slot, served_);
    sends_on_closed_ = attempt == ChanCore::Attempt::kClosed;
  } else {
    c.source_take(c.source);
  }
  return attempt != ChanCore::Attempt::kWouldBlock;
}

// Requires all locks.
std::size_t Selection::take_ready(const Enter& rt) {
  for (;;) {
    std::uint32_t ready = 0;
    SelectCase* chosen = nullptr;
    for (SelectCase* c : by_lock_.first(active_)) {
      if (!looks_ready(*c)) continue;
      ++ready;
      if (ready == 1 || random_below(rt, ready) == 0) chosen = c;
    }
    if (chosen == nullptr) return kNone;
    if (perform(*chosen)) return chosen->number;
  }
}

// Requires all locks, and releases them.
std::size_t Selection::wait() {
  Wait wait;
  for (SelectCase* c : by_lock_.first(active_)) {
    if (c->place.has_value()) {
      unlock_all();
      fatal("select: the case is already in use by another select");
    }
    c->place.emplace(wait, &SelectCase::leave_select, c);
    c->place->slot = c->slot;
    c->queue->push_back(*c->place);
  }
  unlock_all();

  Until until;
  if (after_ != kNone)
    until.deadline_ns = deadline_after(std::chrono::nanoseconds(cases_[after_]->timeout_ns));
  const bool for_ever = active_ == 0 && after_ == kNone;
  const Waiter* const served = wait.block(for_ever ? WaitReason::kSelectNoCases : WaitReason::kSelect, until);

  SelectCase* chosen = nullptr;
  for (SelectCase* c : by_lock_.first(active_)) {
    if (served == &*c->place) {
      chosen = c;  // the thread that served it has taken it out of the queue
      c->got_element = c->kind == Kind::kRecv && c->place->ok;
      sends_on_closed_ = c->kind == Kind::kSend && !c->place->ok;
    } else {
      c->lock->lock();
      if (c->place->queued) c->queue->remove(*c->place);
      c->lock->unlock();
    }
    c->place.reset();
  }
  return chosen != nullptr ? chosen->number : after_;
}

std::size_t Selection::run() {
  if (otherwise_ == kNone) parking_point();
  std::size_t chosen = kNone;
  {
    const Enter rt;  // a goroutine must not lose its P while it holds the locks
    lock_all();
    chosen = take_ready(rt);
    if (chosen == kNone && otherwise_ == kNone) {
      chosen = wait();
    } else {
      unlock_all();
      if (served_ != nullptr) served_->wait->wake();
    }
  }
  if (sends_on_closed_) fatal_send_on_closed();
  return chosen != kNone ? chosen : otherwise_;
}

}  // namespace

void SelectCase::leave_select(Waiter& place, Waiter::Outcome outcome) {
  auto& self = *static_cast<SelectCase*>(place.owner);
  if (outcome == Waiter::Outcome::kUnserved) {
    const LockGuard lock(*self.lock);
    if (place.queued) self.queue->remove(place);
  }
  self.place.reset();
}

std::size_t select_cases(std::span<SelectCase* const> cases, std::span<SelectCase*> scratch) {
  return Selection(cases, scratch).run();
}

std::size_t select_many(std::span<SelectCase* const> cases) {
  std::vector<SelectCase*> scratch(cases.size());
  return select_cases(cases, scratch);
}

}  // namespace tuza::rt
