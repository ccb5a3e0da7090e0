// TUZA_DEBUG: what the runtime prints about itself, and what it does without.
//
//   TUZA_DEBUG=schedtrace=1000              a line about the scheduler every 1000 ms
//   TUZA_DEBUG=schedtrace=1000,scheddetail=1     and every P, M and G with it
//   TUZA_DEBUG=asyncpreemptoff=1            no goroutine is suspended by a signal
//   TUZA_DEBUG=membarrieroff=1              does without membarrier(2)
//   TUZA_DEBUG=stalls=20ms                  reports goroutines that do not come back for so long
#pragma once

#include <cstdint>
#include <string_view>

namespace tuza::rt {

struct DebugOptions {
  std::int64_t schedtrace_ms = 0;  // 0: off
  bool scheddetail = false;
  bool async_preempt_off = false;
  bool membarrier_off = false;
  std::int64_t stalls_ns = 0;  // 0: off

  // Parses `text`; unknown keys and bad values are named on standard error and ignored.
  static DebugOptions parse(std::string_view text);
  static DebugOptions from_environment();
};

}  // namespace tuza::rt
