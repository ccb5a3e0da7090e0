// Waiters claimed under a lock and woken after its release, in the order of the claims.
//
//     rt::WakeList woken;
//     { const std::scoped_lock lock(lock_); woken.claim_all(queue_); }
//     woken.wake_all();
//
// Thread-unsafe: local to one function. Does not allocate: the waiters are linked through their own fields.
// A thread that has claimed a waiter must wake it. Until then nothing may throw, and a goroutine must stay
// inside the runtime (rt/enter.h): otherwise the waiters that it has claimed would wait for as long as it is
// suspended.
#pragma once

#include <tuza/sched/sync/detail/wait.h>

#include <cstddef>

namespace tuza::rt {

class WakeList {
 public:
  WakeList() = default;
  WakeList(const WakeList&) = delete;
  WakeList& operator=(const WakeList&) = delete;

  // The caller has taken `w` off its queue and claimed it.
  void push_back(Waiter& w) {
    w.next = nullptr;
    *end_ = &w;
    end_ = &w.next;
  }
  // Empties `queue`, whose lock must be held. Returns the number of its waiters that could be claimed.
  std::size_t claim_all(WaitQueue& queue) {
    std::size_t count = 0;
    while (Waiter* w = queue.claim_first()) {
      push_back(*w);
      ++count;
    }
    return count;
  }
  // The last access to each of the waiters. Any thread; does not park.
  void wake_all() {
    while (first_ != nullptr) {
      Waiter* const w = first_;
      first_ = w->next;  // before the wake-up, after which `w` may be gone
      w->wait->wake();
    }
    end_ = &first_;
  }

 private:
  Waiter* first_ = nullptr;
  Waiter** end_ = &first_;
};

}  // namespace tuza::rt
