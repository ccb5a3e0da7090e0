// The timers of one P: a 4-ary heap ordered by time.
//
// Any thread may add, move or remove a timer, and run the timers that are due (idle Ms do it for busy Ps);
// one lock per heap. The time of the first timer can be read without the lock, and is all that the
// scheduler looks at on its fast path.
//
// Entries hold the time beside the pointer, so that comparing does not touch the timers themselves, and the
// four children of an entry lie in one cache line. Removal from the middle is constant on average: three
// quarters of the entries are leaves, and the last entry, which fills the hole, seldom has to move far. A
// million pending timers therefore cost little (a hierarchical wheel was rejected: cheaper to add, but it
// rounds, and cascades in bursts).
//
// Postponing a timer, what deadlines do all the time, changes only the timer. Its entry keeps the earlier
// time:
//
//     entry.when_ns <= timer.when_ns
//
// and sinks to its place when that time has come. The order of the entries is the order of those lower
// bounds, and next_ns() is one, too: whoever wakes up for it may find that there is nothing to do yet. How
// far the two are apart the timer knows itself, in milliseconds (slack), so that the entry, in a cache line
// of its own, need not even be looked at.
//
// Thread-safe. Blocks the M for the lock. The memory grows by remapping and is never shrunk.
#pragma once

#include <tuza/sched/detail/runtime_timer.h>
#include <tuza/sched/detail/spin_lock.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace tuza::rt {

class TimerHeap {
 public:
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  TimerHeap() = default;
  TimerHeap(const TimerHeap&) = delete;
  TimerHeap& operator=(const TimerHeap&) = delete;
  ~TimerHeap();

  // No timer is due before; kNever: there is none. Relaxed: who needs an exact answer takes the lock; the
  // parking protocol reads it after its fence.
  [[nodiscard]] std::int64_t next_ns(std::memory_order order = std::memory_order_relaxed) const {
    return next_ns_.load(order);
  }
  [[nodiscard]] std::size_t size() const { return size_.load(std::memory_order_relaxed); }

  // kNever as a time is the moment before it, here and below: a timer that is there is seen.
  void add(Timer& timer, std::int64_t when_ns);

  // Moves `timer` if it is in this heap; false if it is not (any more).
  bool move(Timer& timer, std::int64_t when_ns);
  // Removes `timer` if it is in this heap; false if it is not (any more).
  bool remove(Timer& timer);

  // Fires every timer that is due at `now_ns`, in order of time; returns how many.
  std::size_t run_due(std::int64_t now_ns);

  // None of its timers will fire. For the end of a runtime: what a timer serves, a connection say, may
  // outlive the heap, and be stopped or armed anew then.
  void disarm_all();
  // All timers go over to `to`, `shift_ns` later; none is unarmed in between.
  void move_all(TimerHeap& to, std::int64_t shift_ns);

 private:
  struct Entry {
    std::int64_t when_ns;  // at or before timer->when_ns
    Timer* timer;
  };

  // All with lock_ held.
  void insert(Timer& timer, std::int64_t when_ns);
  void place(std::size_t at, Entry entry);
  void sift_up(std::size_t at, Entry entry);
  void sift_down(std::size_t at, Entry entry);
  void remove_at(std::size_t at);
  Timer* take_due(std::int64_t now_ns);  // takes lock_; null: look again
  void publish();                        // after every change of the first entry
  void grow();

  SpinLock lock_;
  Entry* pages_ = nullptr;                     // guarded by lock_: what is mapped
  Entry* entries_ = nullptr;                   // guarded by lock_: pages_, without the first few
  std::size_t capacity_ = 0;                   // guarded by lock_: entries mapped, those few included
  std::atomic<std::size_t> size_{0};           // written under lock_
  std::atomic<std::int64_t> next_ns_{kNever};  // written under lock_
};

}  // namespace tuza::rt
