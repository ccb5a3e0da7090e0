#include <tuza/sched/sync/barrier.h>

#include <tuza/sched/rt/base/check.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/sync/detail/destroyed.h>
#include <tuza/sched/sync/detail/wake_list.h>
#include <tuza/sched/sync/detail/within.h>

#include <utility>

namespace tuza {

Barrier::Barrier(int participants, std::function<void()> completion)
    : participants_(participants), completion_(std::move(completion)) {
  if (participants < 1) rt::fatal("Barrier: fewer than one participant");
}

Barrier::~Barrier() {
  if (!queue_.empty()) rt::check_nobody_waits("Barrier", lock_, queue_);
}

void Barrier::check_room() const {
  if (completing_ || arrived_ >= participants_) {
    rt::fatal("Barrier: more arrivals than participants");
  }
}

// Runs the completion function, then releases all participants. They stay in the queue until then.
void Barrier::complete_round() {
  struct LetGo {
    Barrier& barrier;
    ~LetGo() { barrier.let_go(); }
  } let_go{*this};
  if (completion_) completion_();
}

void Barrier::let_go() {
  const rt::Enter rt;  // a goroutine must not lose its P while it holds the lock
  rt::WakeList released;
  {
    const LockGuard lock(lock_);
    completing_ = false;
    arrived_ = 0;
    ++round_;
    released.claim_all(queue_);
  }
  released.wake_all();
}

// The context has ended the wait at `place`. An arrival cannot be taken back if its round is over, or is
// being completed; in the latter case the caller waits for the end of the round at `again`.
Barrier::GaveUp Barrier::give_up(rt::Waiter& place, std::uint64_t round, rt::Waiter& again) {
  const rt::Enter rt;
  const LockGuard lock(lock_);
  if (round_ != round) return GaveUp::kTooLate;
  queue_.remove(place);
  if (completing_) {
    queue_.push_back(again);
    return GaveUp::kCompleting;
  }
  --arrived_;
  return GaveUp::kYes;
}

// The goroutine at `place` will never continue: undoes its arrival.
void Barrier::take_back(rt::Waiter& place) {
  const rt::Enter rt;
  const LockGuard lock(lock_);
  if (!place.queued) return;
  queue_.remove(place);
  if (!completing_) --arrived_;
}

bool Barrier::arrive_until(const rt::Until& until) {
  rt::parking_point();
  rt::Wait wait;
  rt::Waiter place(wait, rt::leave<&Barrier::take_back>, this);
  std::uint64_t round = 0;
  bool last = false;
  {
    const rt::Enter rt;
    const LockGuard lock(lock_);
    check_room();
    round = round_;
    last = completing_ = ++arrived_ == participants_;
    if (!last) queue_.push_back(place);
  }
  if (last) {
    complete_round();
    return true;
  }
  if (wait.block(WaitReason::kBarrier, until) == &place) return true;
  rt::Wait completion;
  rt::Waiter again(completion, rt::leave<&Barrier::take_back>, this);
  const GaveUp gave_up = give_up(place, round, again);
  if (gave_up == GaveUp::kCompleting) completion.block(WaitReason::kBarrier);
  return gave_up != GaveUp::kYes;
}

void Barrier::arrive_and_drop() {
  bool last = false;
  {
    const rt::Enter rt;
    const LockGuard lock(lock_);
    check_room();
    last = completing_ = --participants_ == arrived_;
  }
  if (last) complete_round();
}

Result<void> Barrier::arrive_and_wait(const Context& context) {
  return rt::within(context, [this](const rt::Until& until) { return arrive_until(until); });
}

}  // namespace tuza
