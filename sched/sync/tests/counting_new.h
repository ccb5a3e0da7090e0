// How often the program has allocated: this test program's operator new counts. Where a sanitizer has its
// own, nothing is counted.
//
// Thread-safe. Count around something only while nobody else allocates.
#pragma once

#include <tuza/sched/arch/sanitizer.h>

#include <cstdint>

namespace tuza::testing {

inline constexpr bool kCountsAllocations = !rt::kAsan && !rt::kTsan;
std::uint64_t allocations();

}  // namespace tuza::testing
