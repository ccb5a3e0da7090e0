// The CPU time of the threads of this process.
#pragma once

#include <cstdint>
#include <limits>

namespace tuza::rt {

// Names the CPU time of one thread, for all threads of the process.
using CpuClock = std::int64_t;
// The time of the thread that reads it.
inline constexpr CpuClock kReadersCpuClock = std::numeric_limits<CpuClock>::max();

// That of the calling thread.
CpuClock own_cpu_clock();

// The CPU time that the clock's thread has used, in ns; 0 if the thread has ended. One system call.
std::int64_t thread_cpu_ns(CpuClock clock);

}  // namespace tuza::rt
