// TUZA_DEBUG: what the runtime prints about itself.
//
//   TUZA_DEBUG=schedtrace=1000              a line about the scheduler every 1000 ms
//   TUZA_DEBUG=schedtrace=1000,scheddetail=1     and every P, M and G with it
#pragma once

#include <cstdint>
#include <string_view>

namespace tuza::rt {

struct DebugOptions {
  std::int64_t schedtrace_ms = 0;  // 0: off
  bool scheddetail = false;

  // Parses `text`; unknown keys and bad values are named on standard error and ignored.
  static DebugOptions parse(std::string_view text);
  static DebugOptions from_environment();
};

}  // namespace tuza::rt
