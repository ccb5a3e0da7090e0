// An arena of malloc's for each M.
//
// glibc makes no more arenas than eight for each core; threads beyond that share them. A goroutine that is
// suspended inside malloc (rt/slice/lane.h) then keeps an arena's lock from all others that share it until its turn
// comes: with 1,000 that allocate, those who answer waited for seconds, and so did the maker of Ms. An arena
// costs address space (64 MiB, reserved), and memory only as it is used; those of threads that have ended are
// used again.
//
// Where nobody shares an arena, all that a goroutine frees is soon free at the arena's end, and glibc gives it
// back to the kernel whenever it is 128 KiB: a thousand that allocate and free 190 KiB at a time did 0.8 of the
// work of plain threads. So it is let keep 264 KiB, as it would be by the first free() of a block of 132 KiB;
// that much may stay behind in each. (M_TRIM_THRESHOLD would end glibc's own adjustment.)
//
// The limit is the process's. Who has set one by MALLOC_ARENA_MAX or GLIBC_TUNABLES keeps it (one set by
// mallopt(3) cannot be seen, and is lost), and so does who has limited the address space (RLIMIT_AS): stacks
// need it.
#pragma once

#include <cstdint>

namespace tuza::rt {

// Before there are Ms: glibc looks at the limit when there are more than eight arenas, and never again.
void allow_an_arena_per_m();

// False: threads share arenas, by the wish of the user.
[[nodiscard]] bool has_arena_per_m();

// The calling thread has its arena from here on. For a thread that cannot be suspended yet: the list of
// arenas has a lock, too.
// Returns where the arena lies, for in_arena(); 0 if nothing is known of it.
std::uintptr_t take_own_arena();

// There is memory for something small.
[[nodiscard]] bool can_allocate();

// Whether a lock at `address` is that of an arena for which take_own_arena() has returned `arena`: a guess, by how glibc
// lays arenas out.
[[nodiscard]] bool in_arena(std::uintptr_t address, std::uintptr_t arena);

}  // namespace tuza::rt
