// sysmon: the thread that watches the others. It has no P and runs no goroutine.
//
// Every tick it
//   - advances the coarse clock;
//   - scans the lane: suspends and resumes threads that compute without a P (rt/slice/lane.h), and if asked to, reports
//     goroutines that stay in the lane (rt/report/stall_report.h);
//   - takes the P from goroutines that hold it for too long (rt/slice/slices.h);
//   - wakes an M if a P is idle and work lies behind a busy P or in the GRQ, or a timer is overdue;
//   - if nobody has polled for 1 ms while goroutines wait for I/O, sends an idle M to poll if a P is idle,
//     and otherwise gives the poll role to the I/O source's thread;
//   - ten times a second trims some stacks of goroutines that have waited for long (rt/memory/idle_stacks.h);
//   - once a second returns unused stacks, ends threads of Ms that were idle for that second, and reads the CPU
//     limit, unless the program has set the number of Ps;
//   - looks whether the program is deadlocked, at long intervals while only a foreign thread could wake a goroutine
//     (rt/report/deadlock_watch.h);
//   - prints schedtrace.
//
// The sampling interval (tick):
//   - 20 us while work waits behind a marked blocking call;
//   - 250 us while work waits behind any P that makes no progress (1 ms if that P's goroutine computes and may do so for
//     longer);
//   - 1 ms while work waits and a goroutine has kept others waiting within the last 0.1 s, or a P makes no progress, or
//     work or I/O waits beside an idle P;
//   - 2 ms otherwise: a goroutine may begin to compute at any moment.
// When every P has been idle for 50 ms, no thread of the lane needs watching and nothing is left to return, sysmon sleeps
// until a P becomes busy (p_busy), a stack may be trimmed or a look at a standstill is due. If more threads than there are
// Ps wait in the kernel, it also looks whether they compute, after pauses that grow from 10 to 320 ms: all of them may
// begin at once, but until a P becomes busy they only delay one another. An idle process causes no other wake-ups.
#pragma once

#include <pthread.h>
#include <tuza/sched/rt/base/note.h>
#include <tuza/sched/rt/memory/idle_stacks.h>
#include <tuza/sched/rt/slice/lane.h>
#include <tuza/sched/rt/slice/slices.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {

struct Sched;
struct P;

class Sysmon {
 public:
  void start(Sched& sched);
  void stop();

  // A P was taken from the idle set. Pairs with the re-check in deep_sleep(): either this sees `asleep_`, or
  // sysmon sees the busy P.
  void p_busy() { wake_if_asleep(); }
  // A standstill is watched from now on. Pairs with deep_sleep() in the same way.
  void wake_if_asleep() {
    if (asleep_.load(std::memory_order_seq_cst)) [[unlikely]]
      wake();
  }

  // Any thread; does not block.
  void scan_now() { wake(); }

  [[nodiscard]] Lane& lane() { return lane_; }
  [[nodiscard]] const Lane& lane() const { return lane_; }
  [[nodiscard]] const Slices& slices() const { return slices_; }
  [[nodiscard]] Slices& slices() { return slices_; }
  [[nodiscard]] std::uint64_t ticks() const { return ticks_.load(std::memory_order_relaxed); }

 private:
  static void* thread_main(void* sched);
  void run(Sched& sched);
  enum class Slept : std::uint8_t {
    kNot,
    kUntilDue,    // something is to be given back; nothing has happened
    kUntilNeeded  // there is, or was, something to watch: it stays awake for a while
  };
  Slept deep_sleep(Sched& sched);
  void chores(Sched& sched, std::int64_t now);
  bool wake_for_work(Sched& sched, std::int64_t now);
  std::int64_t next_tick(Slices::Pace pace, bool waiting);
  bool hand_over_polling(Sched& sched, std::int64_t now);
  void wake();

  Note note_;
  std::atomic<bool> asleep_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> ticks_{0};
  Lane lane_;
  // -- Owner: sysmon, except for what their headers name.
  Slices slices_;
  IdleStacks idle_stacks_;
  std::int64_t tick_ns_ = 1'000'000;
  std::int64_t every_second_at_ = 0, trace_at_ = 0, trim_at_ = 0;
  bool to_scavenge_ = true;
  pthread_t thread_{};
  bool started_ = false;
};

}  // namespace tuza::rt
