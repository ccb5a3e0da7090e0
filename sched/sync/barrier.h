// Public header, part of <tuza/sync.h>.
//
// Barrier: a number of participants wait for each other, again and again.
//
//     tuza::Barrier step(4, [&] { std::swap(now, next); });
//     ... each of the four:
//     for (int i = 0; i < 1000; ++i) { compute(now, next); step.arrive_and_wait(); }
//
// When as many have arrived as there are participants, the last of them runs the completion function, if
// there is one; then all go on, and the next round begins. The function may park, but must not use the
// barrier. If it throws, the exception goes to the one who ran it, and the others go on all the same; as
// after goexit().
//
// Ordering: what a participant did before it arrived is visible to the completion function; and what that
// did, to everybody after arrive_and_wait(). Lifetime: may be destroyed as soon as every call has returned
// but that of the one who ran the completion, or the last to come; that one does not touch it after it has
// let the others go.
//
// Thread-safe; any thread, inside tuza::run and outside. arrive_and_wait() blocks the G (a thread: itself);
// arrive_and_drop() does not park, unless the completion function does.
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
  // The context's cause if that ended before the round was complete, or had ended already: then this one has
  // not arrived. Parks.
  [[nodiscard]] Result<void> arrive_and_wait(const Context& context);
  // Arrives, and is no participant from then on. Does not wait.
  void arrive_and_drop();

 private:
  enum class GaveUp { kYes, kTooLate, kCompleting };

  bool arrive_until(const rt::Until& until);
  void check_room() const;
  void complete_round();
  void let_go();
  GaveUp give_up(rt::Waiter& place, std::uint64_t round, rt::Waiter& again);
  void take_back(rt::Waiter& place);

  rt::SpinLock lock_;
  // -- Guarded by lock_.
  int participants_;
  int arrived_ = 0;
  bool completing_ = false;  // all have arrived; the completion function runs
  std::uint64_t round_ = 0;  // rounds that are over, their completion functions included
  rt::WaitQueue queue_;      // of this round
  // -- Constant.
  std::function<void()> completion_;
};

}  // namespace tuza
