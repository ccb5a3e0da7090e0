// TUZA_DEBUG=stalls=20ms: who does not come back?
//
// When a goroutine has run on without its P for so long (rt/slice/lane.h; the duration counts from the loss of the
// P, which comes up to a slice after it began), sysmon asks its thread, by the signal of rt/slice/preempt_signal.h,
// to note where it is, and prints goroutine, duration and back trace, once for each time it stays away. The
// signal ends a sleep or a poll(2) that it hits (EINTR), which is why this is not on by default. Marked
// blocking calls are no stalls.
//
// One request at a time. Between sysmon and the handler: `target_`.
#pragma once

#include <tuza/sched/rt/m.h>
#include <tuza/sched/rt/report/backtrace.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {

struct Sched;

class StallReport {
 public:
  // -- Sysmon. The goroutine of `m` has been away since `since_ns`. Sends the signal, if it is time and no
  // other request is under way.
  void consider(Sched& sched, M& m, std::int64_t since_ns, std::int64_t now_ns);
  // Prints what has been noted; gives up on a thread that does not answer.
  void finish(std::int64_t now_ns);
  [[nodiscard]] bool under_way() const { return target_.load(std::memory_order_relaxed) != nullptr; }

  // -- The signal handler, on the thread of `m`: does what was asked for, if anything was.
  void answer(M& m);

 private:
  void print_report(bool answered);

  std::atomic<M*> target_{nullptr};
  std::atomic<bool> answered_{false};
  std::uint64_t goroutine_ = 0;
  const G* g_ = nullptr;
  std::int64_t asked_ns_ = 0;
  std::int64_t away_ns_ = 0;
  Backtrace trace_;
};

}  // namespace tuza::rt
