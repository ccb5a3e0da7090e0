// Walks the stack of a parked goroutine along the frame pointers, while the program runs.
//
// Why it is sound. The goroutine is pinned (G::pin): it does not run, its context is saved, and its stack
// remains its own until unpin(). Nothing that the walk reads is therefore written meanwhile, and
// ThreadSanitizer sees that as well. Every address is checked before it is read: it must lie in the stack,
// above the saved frame, and above the previous address. Whatever the words contain, no other memory is
// touched, and the walk ends.
//
// What it costs: two words per frame, less than a microsecond. A waker spins for that time. The unwinder of
// rt/report/backtrace.h would take ten to thirty microseconds, and may need a lock of the loader.
//
// What it sees: code that was compiled with frame pointers, such as Tuza and everything that links it by its
// CMake targets. A function without a frame pointer is left out; a function that keeps another value in that
// register ends the walk.
#pragma once

#include <tuza/sched/rt/g.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tuza::rt {

// Stores addresses within the calls, from the innermost frame outwards, and returns their number. The caller
// has pinned `g`, which has run before. Allocates nothing.
std::size_t walk_pinned(const G& g, std::span<std::uintptr_t> pcs);

}  // namespace tuza::rt
