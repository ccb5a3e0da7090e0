// The number of allocations of the program: the test program's operator new counts them. Nothing is counted
// where a sanitizer brings its own operator new.
//
// Thread-safe. Count a section only while no other thread allocates.
#pragma once

#include <tuza/sched/arch/sanitizer.h>

#include <cstdint>

namespace tuza::testing {

inline constexpr bool kCountsAllocations = !rt::kAsan && !rt::kTsan;
std::uint64_t allocations();

}  // namespace tuza::testing
