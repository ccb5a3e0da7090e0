#include <tuza/sched/time/timer.h>

#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/idle.h>
#include <tuza/sched/rt/sched.h>

namespace tuza::rt {

void timer_arm(Timer& timer, std::int64_t when_ns) {
  const Enter rt;
  const ExternalEntry entry;  // the heap may be that of a runtime that is ending
  for (TimerHeap* heap = nullptr; (heap = timer.heap.load(std::memory_order_acquire)) != nullptr;) {
    if (heap->move(timer, when_ns)) return;  // else it has just fired
  }
  if (P* p = rt.p(); p != nullptr) {
    // The holder of a P is awake; it looks at its timers before it idles, and sysmon does if it stays away.
    p->timers.add(timer, when_ns);
    return;
  }
  if (entry.sched() == nullptr) return;
  entry.sched()->p(0).timers.add(timer, when_ns);
  wake_one(*entry.sched());  // everybody may be asleep until some later time
}

bool timer_stop(Timer& timer) {
  const Enter rt;
  const ExternalEntry entry;
  for (TimerHeap* heap = nullptr; (heap = timer.heap.load(std::memory_order_acquire)) != nullptr;) {
    if (heap->remove(timer)) return true;
  }
  return false;
}

}  // namespace tuza::rt
