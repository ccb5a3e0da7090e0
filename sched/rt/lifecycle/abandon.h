// Withdraws the waits of the goroutines that the end of a runtime leaves behind.
//
// These goroutines never run again, and their destructors never run. The objects that they shared with others
// may live on: a channel, a lock, a context or a listener may be in main(), in a static, or in use by the next
// runtime. Such an object must not point to stacks that are gone. Therefore the waits of these goroutines are
// withdrawn (detail/pending_wait.h): from then on the primitive behaves as if the goroutines' contexts had
// ended. A goroutine that is left behind keeps for ever what it held.
//
// Runs at the end of a runtime, on the thread that ends it, when no M runs goroutines any more.
#pragma once

namespace tuza::rt {

struct Sched;

// Withdraws the waits of all goroutines that are parked or runnable. Threads that are not Ms may use the
// primitives meanwhile. False: another thread or a library still has the address of an object on a
// goroutine's stack.
bool withdraw_waits(Sched& sched);

// Tells LeakSanitizer that the allocations which these goroutines own stay. Does nothing in builds without
// AddressSanitizer.
void keep_allocations(Sched& sched);

}  // namespace tuza::rt
