// Waiters that were claimed under a lock, to be woken after it: in the order of claiming.
//
//     rt::WakeList woken;
//     { const std::scoped_lock lock(lock_); woken.claim_all(queue_); }
//     woken.wake_all();
//
// Thread-unsafe: one function's. Does not allocate: the waiters are linked by their own fields. Whoever has
// claimed must wake: until then nothing may throw, and a goroutine stays inside the runtime (rt/enter.h), or
// those it has claimed wait for as long as it is suspended.
#pragma once

#include <tuza/sched/sync/detail/wait.h>

#include <cstddef>

namespace tuza::rt {

class WakeList {
 public:
  WakeList() = default;
  WakeList(const WakeList&) = delete;
  WakeList& operator=(const WakeList&) = delete;

  // `w` has been taken off its queue and claimed by the caller.
  void push_back(Waiter& w) {
    w.next = nullptr;
    *end_ = &w;
    end_ = &w.next;
  }
  // Empties `queue`, whose lock is held. Returns how many of those in it could be claimed.
  std::size_t claim_all(WaitQueue& queue) {
    std::size_t count = 0;
    while (Waiter* w = queue.claim_first()) {
      push_back(*w);
      ++count;
    }
    return count;
  }
  // The last access to each of them. Any thread; does not park.
  void wake_all() {
    while (first_ != nullptr) {
      Waiter* const w = first_;
      first_ = w->next;  // before it is woken, and gone
      w->wait->wake();
    }
    end_ = &first_;
  }

 private:
  Waiter* first_ = nullptr;
  Waiter** end_ = &first_;
};

}  // namespace tuza::rt
