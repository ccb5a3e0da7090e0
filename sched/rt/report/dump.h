// Goroutines for people: state, wait reason, age, stack, creator.
#pragma once

#include <tuza/sched/rt/g.h>

namespace tuza::rt {

struct Sched;

// Prints "goroutine 17 [sleep, 250 ms] name:", the stack of a parked one, and who created it.
// The goroutine must stay parked meanwhile. On g0 or an external thread only.
void print_goroutine(const Sched& sched, G& g);

// All that are alive. Nothing else may run: for a process that is about to end.
void print_all_goroutines(Sched& sched);

// Only "goroutine 17 [running] name" and the creator, without its stack. Async-signal-safe.
void print_goroutine_line(const G& g);
void print_creator(const G& g);

}  // namespace tuza::rt
