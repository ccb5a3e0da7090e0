// How much of each thread's stack the C library takes for thread_locals.
#pragma once

#include <cstddef>

namespace tuza::rt {

// An upper estimate, in bytes; 0 where the C library takes none, or does not tell. (It includes modules loaded by dlopen(),
// whose thread_locals mostly lie elsewhere.)
std::size_t thread_locals_on_stack();

}  // namespace tuza::rt
