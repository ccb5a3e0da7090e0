// The record of what a parked goroutine has left where other threads find it: its places in queues, its
// address in the slot of a descriptor.
//
// All of these point to the goroutine's stack or record, which the end of the runtime unmaps. Every wait
// that other threads can find is therefore on record in G::pending_wait while it lasts. The end of the
// runtime withdraws the wait (rt/lifecycle/abandon.h) before the memory is unmapped; afterwards the
// primitive has no such waiter.
//
// A record lives on the goroutine's stack. park() takes a record, and keeps it in force while the goroutine
// is parked. A wait that begins earlier, in user code, keeps its own record in a PendingWaitScope. Records
// nest like the calls that make them.
//
// Owner: the goroutine. The end of the runtime reads the record when the goroutine can no longer run.
#pragma once

#include <cstdint>

namespace tuza::rt {

struct G;

// How a wait is withdrawn, in two steps: first all waits of the runtime take the first step, then all take
// the second. Hence nothing that one wait gives back in its second step goes to another wait that is being
// withdrawn as well.
struct Withdrawal {
  // After this nobody serves the wait any more. Waits for a thread that is about to serve it.
  void (*claim)(G& g, void* wait);
  // Leaves all queues and corrects the counts of their primitives. False: another thread still has an
  // address on the goroutine's stack, which must stay mapped.
  bool (*leave)(void* wait);
};

struct PendingWait {
  const Withdrawal& withdrawal;
  void* wait;
  PendingWait* outer = nullptr;  // the previous record, made by a caller of this wait
};

// Keeps `pending` on record for the lifetime of the scope, unless it is null.
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
