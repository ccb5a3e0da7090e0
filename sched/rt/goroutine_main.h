// A goroutine from its first instruction to its last.
#pragma once

#include <tuza/sched/rt/g.h>

namespace tuza::rt {

struct P;
struct Sched;

// Makes a dead G with a closure runnable, in the caller's hands: it will run entry(closure).
void prepare_goroutine(G& g, void (*entry)(void* closure));

// Gives a runnable goroutine that has never run its context, and a stack if it has none. For the holder of
// `p`, immediately before the first switch to `g`.
void give_first_context(Sched& sched, P& p, G& g);

// Ends the current goroutine, which is outside the runtime; nothing on its stack is destroyed.
[[noreturn]] void end_goroutine();

}  // namespace tuza::rt
