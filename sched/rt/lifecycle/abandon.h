// The goroutines that the end of a runtime leaves behind.
//
// They never run again, and no destructor of theirs does. What they had in common with others is another matter: a
// channel, a lock, a context or a listener may live on, in main(), in a static, in the next runtime, and must not
// point to stacks that are gone. So their waits are withdrawn (detail/pending_wait.h): from then on the primitive is as
// if their contexts had ended. What such a goroutine held, it holds for ever.
//
// For the end of a runtime, on the thread that ends it, when no M runs goroutines any more.
#pragma once

namespace tuza::rt {

struct Sched;

// Withdraws the waits of all goroutines that are parked or runnable. Threads that are no Ms may use the primitives
// meanwhile. False: somebody still has the address of something on a goroutine's stack.
bool withdraw_waits(Sched& sched);

// Tells LeakSanitizer that what these goroutines own stays allocated. Does nothing in other builds.
void keep_allocations(Sched& sched);

}  // namespace tuza::rt
