// TUZA_DEBUG=stalls=20ms: reports goroutines that do not come back to the scheduler.
//
// When a goroutine has run without its P for this long (rt/slice/lane.h), sysmon sends its thread the signal
// of rt/slice/preempt_signal.h, which asks the thread to record where it is, and what it works on. Sysmon then prints the
// goroutine, the duration and the back trace, once for each time the goroutine stays away. The duration
// counts from the loss of the P, which comes up to a slice after the stall began. The signal ends a sleep or
// a poll(2) that it interrupts (EINTR), which is why the report is off by default. Marked blocking calls do
// not count as stalls.
//
// Only one request is active at a time. `target_` synchronises sysmon and the handler.
#pragma once

#include <tuza/sched/rt/m.h>
#include <tuza/sched/rt/report/activity.h>
#include <tuza/sched/rt/report/backtrace.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {

struct Sched;

class StallReport {
 public:
  // -- For sysmon. The goroutine of `m` has been away since `since_ns`: sends the signal, if the threshold is
  // reached and no other request is active.
  void consider(Sched& sched, M& m, std::int64_t since_ns, std::int64_t now_ns);
  // Prints the recorded back trace; gives up on a thread that does not answer.
  void finish(std::int64_t now_ns);
  [[nodiscard]] bool under_way() const { return target_.load(std::memory_order_relaxed) != nullptr; }

  // -- For the signal handler, on the thread of `m`: records the back trace if one was requested.
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
  ActivityText activity_;
};

}  // namespace tuza::rt
