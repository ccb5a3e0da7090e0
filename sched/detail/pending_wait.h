// What a parked goroutine has left where others find it: its places in queues, its address in the slot of a
// descriptor.
//
// All of these point to the goroutine's stack or record, which the end of the runtime unmaps. A wait that others
// can find is therefore on record in G::pending_wait while it lasts, and the end withdraws it (rt/lifecycle/abandon.h) before
// the memory goes: afterwards the primitive has no such waiter.
//
// A record lives on the goroutine's stack. park() takes one and keeps it for as long as the goroutine is parked;
// a wait that begins earlier, in user code, keeps its own in a PendingWaitScope. Records nest like the calls that
// make them.
//
// Owner: the goroutine. The end of the runtime reads it when the goroutine can no longer run.
#pragma once

#include <cstdint>

namespace tuza::rt {

struct G;

// How a wait is withdrawn, in two steps: first all waits of the runtime take the first, then all the second. So
// nothing that one wait gives back in its second step is given to another that is withdrawn as well.
struct Withdrawal {
  // After this nobody serves the wait any more. Waits for whoever is about to.
  void (*claim)(G& g, void* wait);
  // Leaves all queues and mends what their primitives count. False: somebody still has an address on the
  // goroutine's stack, which must stay mapped.
  bool (*leave)(void* wait);
};

struct PendingWait {
  const Withdrawal& withdrawal;
  void* wait;
  PendingWait* outer = nullptr;  // the record that was made before, by a caller of this wait
};

// Keeps `pending` on record, unless it is null.
class PendingWaitScope {
 public:
  // `innermost`: G::pending_wait of the current goroutine.
  PendingWaitScope(PendingWait*& innermost, PendingWait* pending) : innermost_(innermost), outer_(innermost) {
    if (pending == nullptr) return;
    pending->outer = outer_;
    innermost_ = pending;
  }
  ~PendingWaitScope() { innermost_ = outer_; }
  PendingWaitScope(const PendingWaitScope&) = delete;
  PendingWaitScope& operator=(const PendingWaitScope&) = delete;

 private:
  PendingWait*& innermost_;
  PendingWait* const outer_;
};

}  // namespace tuza::rt
