// The chaos build: makes scheduling choices at random, to find code that depends on them.
//
// With TUZA_CHAOS defined, a coin toss decides whether a runnable goroutine goes to the GRQ, at either end,
// or to the LRQ. A goroutine that would resume on the M that it last ran on is given to another M whenever
// another M is idle, so it migrates at every switch. An M that leaves the runtime gives its P away, as if
// sysmon had taken it, once in 16 leaves on average; TUZA_CHAOS_HANDOFF sets another number, and 0 means
// never. Sysmon and Ms sometimes sleep between two steps. In other builds all of this is constant false and disappears.
//
// The choices follow from a seed. A process prints its seed when it starts its first runtime;
// TUZA_CHAOS_SEED sets the seed. The same seed makes the same choices, but the order in which threads run
// still varies.
#pragma once

#include <tuza/sched/rt/m.h>

#include <cstdint>

namespace tuza::rt {

struct Sched;

namespace chaos {

#if defined(TUZA_CHAOS)
inline constexpr bool kEnabled = true;
// Chooses the seed, and prints it once per process. Call before the first M is made.
void choose_seed();
// Returns the seed for M number `id`.
std::uint64_t seed_of(std::uint32_t id);
// At random, queues `g` at either end of a level of the GRQ. True if it did.
bool diverts_to_grq(Sched& sched, M* m, G* g);
// Gives the P of `m` and the goroutine `g` to another M, if `g` last ran on `m` and another M is idle. True if
// it did: `m` then has neither.
bool migrates(M* m, G* g);
// Call when the M is about to return to user code. At random, hands off its P to another M, as if sysmon had
// taken the P.
void before_leave(M* m);
// Call between two steps of a protocol, in the runtime. At random, sleeps for some milliseconds.
void dawdle();
#else
inline constexpr bool kEnabled = false;
inline void choose_seed() {}
inline std::uint64_t seed_of(std::uint32_t id) { return id + 1; }
inline bool diverts_to_grq(Sched&, M*, G*) { return false; }
inline bool migrates(M*, G*) { return false; }
inline void before_leave(M*) {}
inline void dawdle() {}
#endif

}  // namespace chaos
}  // namespace tuza::rt
