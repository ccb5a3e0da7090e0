// TUZA_DEBUG: reports that the runtime prints about itself, and features that it does without.
//
//   TUZA_DEBUG=schedtrace=1000              a line about the scheduler every 1000 ms
//   TUZA_DEBUG=schedtrace=1000,scheddetail=1     also every P, M and G
//   TUZA_DEBUG=asyncpreemptoff=1            no goroutine is suspended by a signal
//   TUZA_DEBUG=membarrieroff=1              membarrier(2) is not used
//   TUZA_DEBUG=heldmutex                    goroutines that park while they hold a std::mutex end the process
//   TUZA_DEBUG=allframes                    dumps and fatal reports show the runtime's own frames, too
//   TUZA_DEBUG=stalls=20ms                  reports goroutines that have run without their P for this long
#pragma once

#include <cstdint>
#include <string_view>

namespace tuza::rt {

struct DebugOptions {
  std::int64_t schedtrace_ms = 0;  // 0: off
  bool scheddetail = false;
  bool async_preempt_off = false;
  bool membarrier_off = false;
  bool held_mutexes = false;
  bool all_frames = false;
  std::int64_t stalls_ns = 0;  // 0: off

  // Parses `text`. Unknown keys and invalid values are reported on standard error and ignored.
  static DebugOptions parse(std::string_view text);
  static DebugOptions from_environment();
};

}  // namespace tuza::rt
