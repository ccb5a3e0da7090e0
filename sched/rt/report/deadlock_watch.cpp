#include <tuza/sched/rt/report/deadlock_watch.h>

#include <algorithm>

namespace tuza::rt {

void DeadlockWatch::watch(std::uint64_t picks, std::int64_t now_ns) {
  const LockGuard lock(mutex_);
  const bool the_same = interval_ns_ != 0 && picks_.load(std::memory_order_relaxed) == picks;
  interval_ns_ = the_same ? std::min(interval_ns_ * 2, kLongestNs) : kFirstNs;
  picks_.store(picks, std::memory_order_relaxed);
  due_ns_.store(now_ns + interval_ns_, std::memory_order_seq_cst);
}

bool DeadlockWatch::covers(std::uint64_t picks, std::int64_t now_ns) const {
  const std::int64_t due = due_ns();
  if (due == TimerHeap::kNever) return false;
  return due - now_ns <= kFirstNs || picks_.load(std::memory_order_relaxed) == picks;
}

}  // namespace tuza::rt
