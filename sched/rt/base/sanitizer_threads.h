// Threads that a sanitizer has made for itself: ThreadSanitizer's, always, and AddressSanitizer's with some of its options.
//
// They wake no goroutine. The sanitizers do not name them, but make them with all signals blocked, faults included, and
// let them sleep most of the time, by nanosleep(2). Threads of programs sleep by clock_nanosleep(2), which the C library
// uses for all its functions.
#pragma once

#include <cstdint>

namespace tuza::rt {

// At most as many as there are. Zero without a sanitizer. Blocks the M for some system calls; allocates nothing.
std::int64_t sanitizer_threads();

}  // namespace tuza::rt
