// A standstill beside foreign threads, and when to look at it again.
//
// All goroutines wait, and only a thread that the runtime does not know could wake one (rt/base/foreign_threads.h). If
// that thread ends instead, the program is deadlocked, and nothing tells the runtime. So sysmon looks again, 50 ms later and
// then at intervals that double up to 10 s: an idle process must stay asleep.
//
// While a standstill is watched, Ms that go idle leave the look to sysmon. A goroutine that a foreign thread wakes
// thousands of times a second would otherwise cost a look each time.
//
// No look is lost. An M makes its P idle and then reads when sysmon will look; sysmon clears that time and then looks for
// busy Ps (all sequentially consistent). Either sysmon sees the idle P, or the M sees that nobody will look.
//
// Thread-safe.
#pragma once

#include <tuza/sched/rt/base/raw_mutex.h>
#include <tuza/sched/rt/queue/timer_heap.h>

#include <atomic>
#include <cstdint>

namespace tuza::rt {

class DeadlockWatch {
 public:
  static constexpr std::int64_t kFirstNs = 50'000'000;
  static constexpr std::int64_t kLongestNs = 10'000'000'000;

  // A standstill was found at `now_ns`. `picks` stands for it: the number grows whenever a goroutine runs.
  void watch(std::uint64_t picks, std::int64_t now_ns);
  // Whether sysmon will look soon enough at the standstill that `picks` stands for.
  [[nodiscard]] bool covers(std::uint64_t picks, std::int64_t now_ns) const;
  // When to look again; TimerHeap::kNever: no standstill is watched.
  [[nodiscard]] std::int64_t due_ns() const { return due_ns_.load(std::memory_order_seq_cst); }
  // Sysmon looks now.
  void looks() { due_ns_.store(TimerHeap::kNever, std::memory_order_seq_cst); }

 private:
  RawMutex mutex_;
  std::int64_t interval_ns_ TUZA_GUARDED_BY(mutex_) = 0;
  std::atomic<std::uint64_t> picks_{0};  // relaxed: read after due_ns_, written before it
  std::atomic<std::int64_t> due_ns_{TimerHeap::kNever};
};

}  // namespace tuza::rt
