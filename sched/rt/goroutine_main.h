// The begin and the end of a goroutine.
#pragma once

#include <tuza/sched/rt/g.h>

namespace tuza::rt {

struct P;
struct Sched;

// Makes a dead G with a closure runnable; the caller holds it. The goroutine will run entry(closure).
void prepare_goroutine(G& g, void (*entry)(void* closure));

// Gives a goroutine that has never run its context, and a stack if it has none. For the holder of `p`,
// immediately before the first switch to `g`.
void give_first_context(Sched& sched, P& p, G& g);

// Ends the current goroutine, which is outside the runtime. Destroys nothing on its stack.
[[noreturn]] void end_goroutine();

}  // namespace tuza::rt
