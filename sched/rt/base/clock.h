// Monotonic time in nanoseconds. A call takes 20 ns on a virtual machine; hot paths use Sched::coarse_ns.
#pragma once

#include <time.h>

#include <cstdint>

namespace tuza::rt {

inline std::int64_t now_ns() {
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return std::int64_t{ts.tv_sec} * 1'000'000'000 + ts.tv_nsec;
}

}  // namespace tuza::rt
