// The timers of one P: a 4-ary heap ordered by time.
//
// Any thread may add, move or remove a timer, and run the timers that are due (idle Ms do so for busy Ps).
// Each heap has one lock. The time of the first timer can be read without the lock, and is the only field
// that the scheduler's fast path reads.
//
// Each entry holds the time beside the pointer, so that comparing does not touch the timers themselves, and
// the four children of an entry share one cache line. Removal from the middle takes constant time on average:
// three quarters of the entries are leaves, and the last entry, which fills the hole, seldom has to move far.
// A million pending timers therefore cost little. (A hierarchical wheel was rejected: adding is cheaper, but
// a wheel rounds, and cascades in bursts.)
//
// Postponing a timer, as deadlines do all the time, changes only the timer. Its entry keeps the earlier time:
//
//     entry.when_ns <= timer.when_ns
//
// The entry sinks to its place when that earlier time has come. The entries are ordered by these lower
// bounds, and next_ns() is a lower bound as well: a thread that wakes up for it may find nothing to do yet.
// The timer itself records the distance between the two times, in milliseconds (slack), so that a move need
// not even read the entry, which lies in another cache line.
//
// Thread-safe. Blocks the M for the lock. The memory grows by remapping and never shrinks.
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

  // No timer is due before this time; kNever: the heap is empty. The default is relaxed: a caller that needs
  // an exact answer takes the lock, and the parking protocol reads the time after its fence.
  [[nodiscard]] std::int64_t next_ns(std::memory_order order = std::memory_order_relaxed) const {
    return next_ns_.load(order);
  }
  [[nodiscard]] std::size_t size() const { return size_.load(std::memory_order_relaxed); }

  // A `when_ns` of kNever means the nanosecond before it, here and below, so that an armed timer is never
  // taken for none.
  void add(Timer& timer, std::int64_t when_ns);

  // Moves `timer` if it is in this heap; false if it is not, or no longer.
  bool move(Timer& timer, std::int64_t when_ns);
  // Removes `timer` if it is in this heap; false if it is not, or no longer.
  bool remove(Timer& timer);

  // Fires every timer that is due at `now_ns`, in order of time; returns the number fired.
  std::size_t run_due(std::int64_t now_ns);

  // Disarms all timers without firing them. For the end of a runtime: the object that a timer serves, such as
  // a connection, may outlive the heap, and stop the timer or arm it anew.
  void disarm_all();
  // Moves all timers to `to`, `shift_ns` later; no timer is unarmed in between.
  void move_all(TimerHeap& to, std::int64_t shift_ns);

 private:
  struct Entry {
    std::int64_t when_ns;  // at or before timer->when_ns
    Timer* timer;
  };

  void insert(Timer& timer, std::int64_t when_ns) TUZA_REQUIRES(lock_);
  void place(std::size_t at, Entry entry) TUZA_REQUIRES(lock_);
  void sift_up(std::size_t at, Entry entry) TUZA_REQUIRES(lock_);
  void sift_down(std::size_t at, Entry entry) TUZA_REQUIRES(lock_);
  void remove_at(std::size_t at) TUZA_REQUIRES(lock_);
  Timer* take_due(std::int64_t now_ns);  // null: check next_ns() again
  void publish() TUZA_REQUIRES(lock_);   // call after every change of the first entry
  void grow() TUZA_REQUIRES(lock_);

  SpinLock lock_;
  Entry* pages_ TUZA_GUARDED_BY(lock_) = nullptr;    // what is mapped
  Entry* entries_ TUZA_GUARDED_BY(lock_) = nullptr;  // pages_ without its first kUnused entries
  std::size_t capacity_ TUZA_GUARDED_BY(lock_) = 0;  // entries mapped, unused ones included
  std::atomic<std::size_t> size_{0};                 // written under lock_
  std::atomic<std::int64_t> next_ns_{kNever};        // written under lock_
};

}  // namespace tuza::rt
