// A goroutine from its first instruction to its last.
#pragma once

#include <tuza/sched/rt/g.h>

namespace tuza::rt {

// Gives a dead G with a closure on its stack a context that will run entry(closure): it is runnable then,
// in the caller's hands.
void prepare_goroutine(G& g, void (*entry)(void* closure));

// Ends the current goroutine, which is outside the runtime; nothing on its stack is destroyed.
[[noreturn]] void end_goroutine();

}  // namespace tuza::rt
