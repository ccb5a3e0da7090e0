// Fake time, the implementation of tuza::testing::FakeClock: it passes only when nothing else happens.
//
// While fake time is installed, clock_arm() puts timers into a separate heap, which no P checks. An M that is
// about to sleep because all goroutines wait (rt/report/deadlock.h: stands_still) takes a P instead. It then
// either wakes a goroutine that waits for this standstill (settle), or lets time jump to the first timer.
//
// Which M sees the standstill. When two Ms check at the same time, one may be the reason why the other sees no
// standstill; this M must then check after the other. Therefore the check, and the taking of the P, happen
// under one lock (Turn): the M that gives up its P last also checks last, and sees that all others have given
// up theirs. Once an M has taken the P, no thread sees a standstill until this M is idle again.
//
// There is one object per process. It is never freed, because threads that are not Ms may read it at any time.
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
  // Null if none is installed. The object is never freed, and its state changes under its lock. Acquire: the
  // caller sees the object completely constructed.
  [[nodiscard]] static FakeTime* installed() { return installed_.load(std::memory_order_acquire); }

  // Begins at the present time. False if fake time is already installed. Call on a goroutine.
  static bool install();
  // The remaining timers continue on the real clock, with their remaining durations. Call on a goroutine;
  // parks.
  void uninstall();
  // Uninstalls fake time and disarms its timers, because the runtime has ended.
  static void runtime_ended();

  [[nodiscard]] std::int64_t now_ns() const { return now_ns_.load(std::memory_order_acquire); }
  Armed arm(Timer& timer, std::int64_t when_ns);
  // Parks until all other goroutines wait.
  void settle();

  // For an M that is about to sleep. True: time has passed, and the M has a P with goroutines to run.
  static bool pass(M* m);

  // Hold a Turn while calling could_pass(). True: a timer or a caller of settle() waits for a standstill.
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

  RawMutex turn_;                                 // before mutex_
  RawMutex mutex_;                                // before the locks of heaps
  bool governs_ TUZA_GUARDED_BY(mutex_) = false;  // fake time is installed
  WaitQueue settlers_ TUZA_GUARDED_BY(mutex_);
  TimerHeap heap_;
  std::atomic<bool> firing_{false};      // an M is firing due timers, or waking a settler
  std::atomic<std::int64_t> now_ns_{0};  // written by install(), and by an M that has found a standstill
};

}  // namespace tuza::rt
