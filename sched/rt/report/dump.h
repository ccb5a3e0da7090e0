// Prints goroutines for human readers: state, wait reason, age, stack, creator.
#pragma once

#include <tuza/sched/rt/g.h>

namespace tuza::rt {

struct Sched;

// Prints "goroutine 17 [sleep, 250 ms] name:", the stack if the goroutine is parked, and its creator. The
// goroutine must stay parked meanwhile. Call on g0 or an external thread only.
void print_goroutine(const Sched& sched, G& g);

// Prints all goroutines that are alive. Nothing else may run: for a process that is about to end.
void print_all_goroutines(Sched& sched);

// Each prints one part, without the stack: the line "goroutine 17 [running] name:", or the creator.
// Async-signal-safe.
void print_goroutine_line(const G& g);
void print_creator(const G& g);

// Prints what the goroutine works on, if it has said so. For the goroutine's own thread. Async-signal-safe.
void print_activity(const G& g);

}  // namespace tuza::rt
