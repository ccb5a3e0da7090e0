// The stack of a parked goroutine, while the program runs: a walk along the frame pointers.
//
// Why it is sound. The goroutine is pinned (G::pin): it does not run, its context is saved and its stack is
// its own until unpin(), so nothing that is read here is written meanwhile; and ThreadSanitizer sees that,
// too. Every address is checked before it is read: it lies in the stack, above the saved frame, and above the
// one before. So whatever the words contain, nothing else is touched, and the walk ends.
//
// What it costs: two words a frame, less than a microsecond. A waker spins for so long. The unwinder of
// rt/report/backtrace.h would take ten to thirty, and may want a lock of the loader's.
//
// What it sees: code that was compiled with frame pointers, as Tuza and whatever links it by its CMake
// targets is. A function without is left out; one that keeps something else in that register ends the walk.
#pragma once

#include <tuza/sched/rt/g.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tuza::rt {

// Addresses within the calls, from the innermost frame on; returns how many. `g` is pinned by the caller, and
// has run before. Allocates nothing.
std::size_t walk_pinned(const G& g, std::span<std::uintptr_t> pcs);

}  // namespace tuza::rt
