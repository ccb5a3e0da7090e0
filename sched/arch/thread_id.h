// A number for the calling thread, which no other thread of the process has at the same time. On Linux it is the kernel's
// (gettid(2)), by which debuggers and /proc know the thread; elsewhere the threads are counted.
//
// Thread-safe and async-signal-safe.
#pragma once

#include <cstdint>

namespace tuza {

// Never 0.
std::int32_t own_thread_id();

}  // namespace tuza
