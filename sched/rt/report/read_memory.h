// Reads memory of this process that another thread may unmap at any time.
#pragma once

#include <cstddef>

namespace tuza::rt {

// False: not all of it is there, or the system cannot read it safely. Allocates nothing.
bool read_memory_safely(void* into, const void* from, std::size_t bytes);

}  // namespace tuza::rt
