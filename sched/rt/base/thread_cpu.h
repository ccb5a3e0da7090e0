// The CPU time of the threads of this process, by POSIX's clocks for it.
#pragma once

#include <time.h>

#include <cstdint>

namespace tuza::rt {

// The clock of the calling thread's CPU time, for other threads to read. (CLOCK_THREAD_CPUTIME_ID is that of the reader.)
clockid_t own_cpu_clock();

// The CPU time that the clock's thread has used, in ns; 0 if the thread has ended. One system call.
std::int64_t thread_cpu_ns(clockid_t clock);

}  // namespace tuza::rt
