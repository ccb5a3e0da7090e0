// Time that passes only when nothing else happens: what tuza::testing::FakeClock is made of.
//
// While it is installed, clock_arm() puts timers into a heap of its own that no P looks at. An M that is
// about to sleep because all goroutines wait (rt/report/deadlock.h: stands_still) takes a P instead and lets time
// jump to the first of them, or lets one go that waits for that very standstill (settle).
//
// Whose standstill it is. Of two Ms that look at once one may be the reason why the other sees no standstill;
// it must then look after the other has. So looking, and taking the P, happen under one lock (Turn): the last
// M to give its P up looks last, and sees that all others have. Once an M has the P, nobody sees a standstill
// until it is idle again.
//
// One for the process, never freed: threads that are no Ms may read it at any time.
#pragma once

#include <tuza/sched/rt/base/raw_mutex.h>
#include <tuza/sched/rt/queue/timer_heap.h>
#include <tuza/sched/sync/detail/wait.h>

#include <atomic>
#include <cstdint>
#include <mutex>

namespace tuza::rt {

struct M;
struct Sched;

class FakeTime {
 public:
  // Null: none. What it points to is never freed, and changes under its lock; acquire: it has been made.
  [[nodiscard]] static FakeTime* installed() { return installed_.load(std::memory_order_acquire); }

  // False if one is installed already. It begins at the present time. On a goroutine.
  static bool install();
  // Timers that are left go on by the real clock, with what they had left. On a goroutine; parks.
  void uninstall();
  // The runtime has ended: its timers are gone.
  static void runtime_ended();

  [[nodiscard]] std::int64_t now_ns() const { return now_ns_.load(std::memory_order_acquire); }
  Armed arm(Timer& timer, std::int64_t when_ns);
  // Parks until everybody else waits.
  void settle();

  // For an M that is about to sleep. True: time has passed, and the M has a P and goroutines for it.
  static bool pass(M* m);

  // Under a turn: whether there is anything to let go.
  using Turn = std::unique_lock<RawMutex>;
  [[nodiscard]] static Turn turn() {
    FakeTime* fake = installed();
    return fake == nullptr ? Turn() : Turn(fake->turn_);
  }
  [[nodiscard]] static bool could_pass() {
    FakeTime* fake = installed();
    return fake != nullptr && fake->something_waits();
  }

 private:
  [[nodiscard]] bool something_waits();
  void let_go();
  void leave_settlers(Waiter& place);

  static std::atomic<FakeTime*> installed_;

  RawMutex turn_;         // before mutex_
  RawMutex mutex_;        // before the locks of heaps
  bool governs_ = false;  // guarded by mutex_: installed
  WaitQueue settlers_;    // guarded by mutex_
  TimerHeap heap_;
  std::atomic<bool> firing_{false};      // somebody is firing timers of some moment
  std::atomic<std::int64_t> now_ns_{0};  // written by who has found a standstill
};

}  // namespace tuza::rt
