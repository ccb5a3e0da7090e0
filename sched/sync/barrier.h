// Public header, part of <tuza/sync.h>.
//
// Barrier: participants wait for each other, round after round.
//
//     tuza::Barrier step(4, [&] { std::swap(now, next); });
//     ... each of the four:
//     for (int i = 0; i < 1000; ++i) { compute(now, next); step.arrive_and_wait(); }
//
// When all participants have arrived, the last one runs the completion function, if there is one. Then all
// of them continue, and the next round begins. The function may park, but must not use the barrier. If the
// function throws, the exception goes to the participant that ran the function, and the others continue all
// the same. goexit() in the function has the same effect.
//
// Ordering: everything that a participant did before it arrived is visible to the completion function.
// Everything that the completion function did is visible to every participant after arrive_and_wait().
// Lifetime: the barrier may be destroyed as soon as every call has returned except the call of the last
// participant, which ran the completion function if there is one: that call does not touch the barrier after
// it has released the others.
//
// Thread-safe; any thread, inside and outside tuza::run. arrive_and_wait() parks the goroutine (a thread
// blocks). arrive_and_drop() does not park, unless the completion function does.
#pragma once

#include <tuza/sched/detail/spin_lock.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/detail/wait.h>

#include <cstdint>
#include <functional>

namespace tuza {

class Context;

class Barrier {
 public:
  // Aborts if `participants` is less than one.
  explicit Barrier(int participants, std::function<void()> completion = {});
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;
  ~Barrier();

  // Parks until the round is complete. Aborts if more arrive than there are participants.
  void arrive_and_wait() { (void)arrive_until(rt::Until{}); }
  // Like arrive_and_wait(), but returns the context's cause if the context ends before the round is
  // complete, or has already ended; the caller has not arrived then. Parks.
  [[nodiscard]] Result<void> arrive_and_wait(const Context& context);
  // Arrives, and leaves the set of participants. Does not wait.
  void arrive_and_drop();

 private:
  enum class GaveUp { kYes, kTooLate, kCompleting };

  bool arrive_until(const rt::Until& until);
  void check_room() const TUZA_REQUIRES(lock_);
  void complete_round();
  void let_go();
  GaveUp give_up(rt::Waiter& place, std::uint64_t round, rt::Waiter& again);
  void take_back(rt::Waiter& place);

  rt::SpinLock lock_;
  int participants_ TUZA_GUARDED_BY(lock_);
  int arrived_ TUZA_GUARDED_BY(lock_) = 0;
  bool completing_ TUZA_GUARDED_BY(lock_) = false;  // all have arrived; the completion function runs
  std::uint64_t round_ TUZA_GUARDED_BY(lock_) = 0;  // completed rounds, their completion functions included
  rt::WaitQueue queue_ TUZA_GUARDED_BY(lock_);      // the waiters of this round
  // -- Constant.
  std::function<void()> completion_;
};

}  // namespace tuza
