// How a runtime starts, and how it ends: the steps S1 to S6 and E1 to E9 of docs/internals/lifecycle.md. The same
// numbers stand beside the code.
//
// Three may end a runtime: the main goroutine, by returning; and whoever calls exit(), a goroutine or another thread
// (rt/lifecycle/exit.h). The first of them does it.
#pragma once

#include <cstdint>

namespace tuza {
struct RunOptions;
}

namespace tuza::rt {

struct Sched;

// S1 to S5: a runtime without a goroutine, found by active().
Sched* start_runtime(const RunOptions& options);

// E1. True for the first who calls it, who must then end the runtime.
bool claim_end(Sched& sched);

// E2: no goroutine is started or resumed any more. What runs goes on to its next parking call.
void stop_runtime(Sched& sched);

// What becomes of the runtime's memory.
enum class Afterwards : std::uint8_t {
  kUnmap,  // run() returns: all of it is unmapped, unless a thread or a library still uses some
  kKeep,   // exit(): the caller may be on a goroutine's stack, and the process ends soon
};
// E3 to E9, on a thread that is no M.
void end_runtime(Sched& sched, Afterwards afterwards);

}  // namespace tuza::rt
