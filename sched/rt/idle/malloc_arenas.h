// Gives each M a malloc arena of its own.
//
// By default glibc makes at most eight arenas per core; further threads share them. A goroutine that is
// suspended inside malloc (rt/slice/lane.h) then blocks all other threads that share its arena until it is
// resumed. With 1,000 goroutines that allocate, responsive goroutines waited for seconds, and so did the
// maker of Ms. An arena costs address space (64 MiB, reserved), and memory only as it is used; arenas of
// terminated threads are reused.
//
// Where threads do not share an arena, everything that a goroutine frees soon lies free at the arena's end,
// and glibc returns it to the kernel whenever it reaches 128 KiB. A thousand goroutines that allocated and
// freed 190 KiB at a time achieved 0.8 of the throughput of plain threads. glibc is therefore made to keep
// 264 KiB, as it would be by the first free() of a block of 132 KiB; that much may remain in each arena.
// (M_TRIM_THRESHOLD would end glibc's own adjustment.)
//
// The limit is per process. A limit that the user has set by MALLOC_ARENA_MAX or GLIBC_TUNABLES stays. (A
// limit set by mallopt(3) cannot be seen, and is lost.) Where the address space is limited (RLIMIT_AS), arenas are
// shared, and only as many as fit into a quarter of it: stacks need the rest.
#pragma once

#include <cstdint>

namespace tuza::rt {

// Call before any M exists: glibc reads the limit once, when there are more than eight arenas, and never
// again.
void allow_an_arena_per_m();

// False: threads share arenas, because the user's settings ask for it.
[[nodiscard]] bool has_arena_per_m();

// Gives the calling thread its arena. Call on a thread that cannot be suspended yet, because the list of
// arenas has a lock too. Returns the arena's position, for in_arena(); 0 if it is unknown.
std::uintptr_t take_own_arena();

// Whether there is memory for a small allocation.
[[nodiscard]] bool can_allocate();

// Whether a lock at `address` belongs to the arena for which take_own_arena() returned `arena`: a guess,
// based on glibc's layout of arenas.
[[nodiscard]] bool in_arena(std::uintptr_t address, std::uintptr_t arena);

}  // namespace tuza::rt
