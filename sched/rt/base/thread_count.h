// How many threads the process has.
#pragma once

#include <cstdint>

namespace tuza::rt {

// As the kernel counts them at this moment; 0: unknown. Blocks the M for some system calls; allocates nothing.
std::int64_t count_threads();

}  // namespace tuza::rt
