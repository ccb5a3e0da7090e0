// How long a goroutine may keep its P, and by which signal it is suspended later on: from the environment.
//
//   TUZA_SLICE_MS=10             1 to 10000: the longest that a goroutine keeps a P
//   TUZA_EARLY_HANDOFF_US=1000   100 to 10000000: so long, if others wait for it; 0: they wait for the slice
//   TUZA_LANE_EXTRA=6            1 to 1000: so many more than there are Ps may compute without one; 0: none
//   TUZA_PREEMPT_SIGNAL=23       number of the signal (SIGURG); 0: none, nothing is ever suspended
#pragma once

#include <signal.h>

#include <cstdint>

namespace tuza::rt {

struct SliceOptions {
  std::int64_t slice_ns = 10'000'000;
  std::int64_t early_ns = 1'000'000;  // 0: off
  std::uint32_t lane_extra = 6;
  int signal = SIGURG;  // 0: off

  // What is wrong is named on standard error and ignored.
  static SliceOptions from_environment();
};

}  // namespace tuza::rt
