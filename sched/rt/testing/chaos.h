// The chaos build: scheduling choices made at random, to find what depends on them.
//
// With TUZA_CHAOS defined, runnable goroutines go to either end of the global queue or to the local one by
// the toss of a coin, and a goroutine that would resume on the M it last ran on is, as often as there is
// another M to take it, sent to that one: it migrates at every switch. Of so many leaves of the runtime, 16
// or TUZA_CHAOS_HANDOFF, one gives the P away on average, as if sysmon had taken it; 0: none. In other builds
// all of this is constant false and disappears.
//
// The choices follow from a seed, which a process prints when it starts its first runtime; TUZA_CHAOS_SEED
// gives it one. The same seed makes the same choices, but threads still run as they like.
#pragma once

#include <tuza/sched/rt/m.h>

#include <cstdint>

namespace tuza::rt {

struct Sched;

namespace chaos {

#if defined(TUZA_CHAOS)
inline constexpr bool kEnabled = true;
// Before the first M is made; prints the seed, once per process.
void choose_seed();
// The seed for M number `id`.
std::uint64_t seed_of(std::uint32_t id);
// Queues `g` somewhere in the GRQ, sometimes; true if it did.
bool diverts_to_grq(Sched& sched, M* m, G* g);
// Gives the P of `m` and the goroutine `g` to another M, if `g` was last here and there is one; true if it
// did: `m` then has neither.
bool migrates(M* m, G* g);
// The M is about to go back to user code: its P goes to another M, sometimes, as if sysmon had taken it.
void before_leave(M* m);
#else
inline constexpr bool kEnabled = false;
inline void choose_seed() {}
inline std::uint64_t seed_of(std::uint32_t id) { return id + 1; }
inline bool diverts_to_grq(Sched&, M*, G*) { return false; }
inline bool migrates(M*, G*) { return false; }
inline void before_leave(M*) {}
#endif

}  // namespace chaos
}  // namespace tuza::rt
