// How long a goroutine may keep its P, and which signal suspends its thread afterwards: from the environment.
//
//   TUZA_SLICE_MS=10             1 to 10000: the maximum time that a goroutine keeps a P
//   TUZA_EARLY_HANDOFF_US=1000   100 to 10000000: the maximum if others wait; 0: others wait for the slice
//   TUZA_LANE_EXTRA=6            1 to 1000: goroutines that may compute without a P beyond the number of Ps; 0: none
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

  // Invalid values are reported on standard error and ignored.
  static SliceOptions from_environment();
};

}  // namespace tuza::rt
