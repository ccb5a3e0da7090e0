// Starts and ends a runtime: the steps S1 to S5 and E1 to E9 of docs/internals/lifecycle.md. S6, the main
// goroutine, is sched/run.cpp's.
//
// Comments in the code give the same step numbers. A runtime may be ended by the main goroutine, when it
// returns, or by a goroutine or another thread that calls exit() (rt/lifecycle/exit.h). The first of them
// ends it.
#pragma once

#include <cstdint>

namespace tuza {
struct RunOptions;
}

namespace tuza::rt {

struct Sched;

// S1 to S5: makes a runtime without a goroutine; active() returns it.
Sched* start_runtime(const RunOptions& options);

// E1. True for the first caller, which must then end the runtime.
bool claim_end(Sched& sched);

// E2: from here on no goroutine is started or resumed. A goroutine that is running continues to its next
// parking call.
void stop_runtime(Sched& sched);

// Whether the memory of the runtime is unmapped at its end.
enum class Afterwards : std::uint8_t {
  kUnmap,  // run() returns: all of it is unmapped, unless a thread or a library still uses some
  kKeep,   // exit(): the caller may be on a goroutine's stack, and the process ends soon
};
// E3 to E9. Call on a thread that is not an M.
void end_runtime(Sched& sched, Afterwards afterwards);

}  // namespace tuza::rt
