// Walks the stack of a goroutine that stands still, along the frame pointers, while the program runs.
//
// Why it is sound. A parked goroutine is pinned (G::pin): it does not run, its context is saved, and its stack
// remains its own until unpin(). An interrupted goroutine is in the signal handler of its own thread. Nothing
// that the walk reads is therefore written meanwhile, and ThreadSanitizer sees that as well. Every address is
// checked before it is read: it must lie in the stack, above the stack pointer, and above the previous
// address. Whatever the words contain, no other memory is touched, and the walk ends.
//
// What it costs: two words per frame, less than a microsecond. A waker spins for that time. The unwinder of
// rt/report/backtrace.h would take ten to thirty microseconds, and may need a lock of the loader.
//
// What it sees: code that was compiled with frame pointers, such as Tuza and everything that links it by its
// CMake targets. A function without a frame pointer is left out. An interrupted function may keep another value
// in that register, as libc's may: the walk then searches the stack for the frame pointer that it has saved, and
// leaves out the function's caller. If it finds none, it ends.
#pragma once

#include <tuza/sched/arch/interrupted.h>
#include <tuza/sched/rt/g.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace tuza::rt {

// Both store addresses within the calls, from the innermost frame outwards, and return their number. They
// allocate nothing, and are async-signal-safe.

// The caller has pinned `g`, which has run before.
std::size_t walk_pinned(const G& g, std::span<std::uintptr_t> pcs);

// For the signal handler on the thread that runs `g`, which was interrupted in user code.
std::size_t walk_interrupted(const G& g, const Interrupted& at, std::span<std::uintptr_t> pcs);

}  // namespace tuza::rt
