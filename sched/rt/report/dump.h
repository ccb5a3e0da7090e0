// Prints goroutines for human readers: state, wait reason, age, stack, creator.
#pragma once

#include <tuza/sched/rt/g.h>

namespace tuza::rt {

struct Backtrace;
struct Sched;

// Prints all goroutines that are alive: "goroutine 17 [sleep, 250 ms] name:", the stack if the goroutine is parked, as in
// dumps without the runtime's own frames (unless TUZA_DEBUG=allframes), and its creator. Nothing else may run: for a
// process that is about to end. Allocates. Call on g0 or an external thread only.
void print_all_goroutines(Sched& sched);

// Prints a stack in the same way; without memory for that all of its frames, and names as they are. For a process that is
// about to end.
void print_program_frames(const Backtrace& trace);

// Each prints one part, without the stack: the line "goroutine 17 [running] name:", or the creator.
// Async-signal-safe.
void print_goroutine_line(const G& g);
void print_creator(const G& g);

// Prints what the goroutine works on, if it has said so. For the goroutine's own thread. Async-signal-safe.
void print_activity(const G& g);

}  // namespace tuza::rt
