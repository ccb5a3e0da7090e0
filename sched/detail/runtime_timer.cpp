#include <tuza/sched/detail/runtime_timer.h>

#include <tuza/sched/rt/base/fork.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/idle/idle.h>
#include <tuza/sched/rt/sched.h>

namespace tuza::rt {
namespace {

// For timers armed by a thread that holds no P: all Ms may be asleep until some later time. seq_cst, against
// TimerWatch (rt/idle/idle.cpp): the heap has published the timer, if the timer is the heap's first. Either
// an M that watches some time reads this timer, or its watch is visible here.
void watch_out(Sched& sched, std::int64_t when_ns) {
  if (when_ns < sched.timer_watch_ns.load(std::memory_order_seq_cst)) wake_one(sched);
}

}  // namespace

Armed timer_arm(Timer& timer, std::int64_t when_ns) {
  const Enter rt;
  const ExternalEntry entry;
  if (entry.sched() == nullptr) return Armed::kNoRuntime;  // the heap may be gone with its runtime
  for (TimerHeap* heap = nullptr; (heap = timer.heap.load(std::memory_order_acquire)) != nullptr;) {
    if (!heap->move(timer, when_ns)) continue;  // the timer has just fired
    if (rt.p() == nullptr) watch_out(*entry.sched(), when_ns);
    return Armed::kMoved;
  }
  if (P* p = rt.p(); p != nullptr) {
    // The holder of a P is awake. It checks its timers before it idles, and sysmon checks them if the holder
    // stays away.
    p->timers.add(timer, when_ns);
    return Armed::kAdded;
  }
  entry.sched()->p(0).timers.add(timer, when_ns);
  watch_out(*entry.sched(), when_ns);
  return Armed::kAdded;
}

bool timer_stop(Timer& timer) {
  const Enter rt;
  const ExternalEntry entry;
  if (entry.sched() != nullptr) {
    for (TimerHeap* heap = nullptr; (heap = timer.heap.load(std::memory_order_acquire)) != nullptr;) {
      if (heap->remove(timer)) return true;
    }
  }
  if (!timer_disarmed(timer)) return false;
  timer.index = 0;  // so that only one call returns true
  return true;
}

bool timer_disarmed(const Timer& timer) {
  if (is_forked_child()) return true;  // the heap is the parent's
  return timer.heap.load(std::memory_order_acquire) == nullptr && timer.index == Timer::kDisarmed;
}

}  // namespace tuza::rt
