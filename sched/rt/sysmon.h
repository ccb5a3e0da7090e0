// sysmon: the thread that watches the others. It has no P and runs no goroutine.
//
// Every tick it
//   - advances the coarse clock;
//   - finds Ps whose goroutine has run long while others wait behind it and a P is idle: wakes an M;
//   - finds timers overdue on busy Ps: wakes an M;
//   - gives the poll role to the I/O source's thread when all Ms are busy and nobody has polled for 1 ms;
//   - once a second gives unused stacks back, once in ten follows the CPU quota;
//   - prints schedtrace.
//
// A tick is 1 ms while there is something to look after and backs off to 10 ms. When every P has been idle
// for 50 ms and nothing is left to give back, it sleeps until the first P goes to work (first_p_busy):
// an idle process makes no wake-ups.
#pragma once

#include <pthread.h>
#include <tuza/sched/rt/idle_stacks.h>
#include <tuza/sched/rt/lane.h>
#include <tuza/sched/rt/note.h>
#include <tuza/sched/rt/slices.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {

struct Sched;
struct P;

class Sysmon {
 public:
  void start(Sched& sched);
  void stop();

  // A P was taken from the idle ones. Pairs with the re-check in deep_sleep(): either this sees `asleep_`,
  // or sysmon sees the busy P.
  void p_busy() {
    if (asleep_.load(std::memory_order_seq_cst)) [[unlikely]]
      wake();
  }

  [[nodiscard]] Lane& lane() { return lane_; }
  [[nodiscard]] const Lane& lane() const { return lane_; }
  [[nodiscard]] const Slices& slices() const { return slices_; }
  [[nodiscard]] std::uint64_t ticks() const { return ticks_.load(std::memory_order_relaxed); }

 private:
  static void* thread_main(void* sched);
  void run(Sched& sched);
  bool deep_sleep(Sched& sched);
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
  // -- Owner: sysmon.
  Slices slices_;
  IdleStacks idle_stacks_;
  std::int64_t tick_ns_ = 1'000'000;
  std::int64_t scavenge_at_ = 0, quota_at_ = 0, trace_at_ = 0, trim_at_ = 0;
  bool to_scavenge_ = true;
  pthread_t thread_{};
  bool started_ = false;
};

}  // namespace tuza::rt
