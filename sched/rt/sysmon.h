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
#include <tuza/sched/rt/idle_mask.h>
#include <tuza/sched/rt/note.h>

#include <array>
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

  [[nodiscard]] std::uint64_t ticks() const { return ticks_.load(std::memory_order_relaxed); }

 private:
  static void* thread_main(void* sched);
  void run(Sched& sched);
  bool deep_sleep(Sched& sched);
  bool look_after_ps(Sched& sched, std::int64_t now);
  bool hand_over_polling(Sched& sched, std::int64_t now);
  void wake();

  Note note_;
  std::atomic<bool> asleep_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> ticks_{0};
  std::array<std::uint64_t, kMaxProcsLimit> seen_picks_{};  // P::picks at the last look; owner: sysmon
  pthread_t thread_{};
  bool started_ = false;
};

}  // namespace tuza::rt
