// What checkpoints_test.cpp runs: the only code of the test with checkpoints in it. None of it parks by
// itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace tuza::instrumented {

// `rounds` steps of a chain of numbers. Some nanoseconds each.
std::uint64_t chain(std::uint64_t rounds);
// chain() of a known length, computed before main().
extern const std::uint64_t kChainAtStart;
inline constexpr std::uint64_t kChainAtStartRounds = 1'000'000;

void spin_until(const std::atomic<bool>& flag);
// The same as the handler of a signal, until `g_leave_handler`.
extern std::atomic<bool> g_in_handler, g_leave_handler;
void spin_in_handler(int signal);

// Sorts by libc, which calls an instrumented comparison. Both must survive the switches.
void sort(std::vector<std::uint64_t>& numbers);

// Throws `id` through frames whose destructors compute for `rounds`, catches it, computes, rethrows it, and
// returns what came out; checks the count of exceptions in flight on the way. -1 if anything was wrong.
int throw_through(int id, std::uint64_t rounds);

}  // namespace tuza::instrumented
