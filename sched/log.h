// Public header, part of <tuza/tuza.h>.
//
// What the runtime has to say: one line at a time, to wherever the program wants it.
//
// The scheduler and the poller report rare things (no guard pages left, out of descriptors) through this
// hook instead of a logging library, so that they depend on none. Default: standard error; a line that
// finds no room there within a moment is lost.
// Thread-safe. Must not be called with a runtime lock held.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace tuza {

enum class LogLevel : std::uint8_t { kInfo, kWarning, kError };

// Receives each line, without a line end. It may be called from any thread, inside the runtime: it must
// not park, throw, or call back into Tuza. Null restores the default.
using LogSink = void (*)(LogLevel level, std::string_view line);
void set_log_sink(LogSink sink);

void log_line(LogLevel level, std::string_view line);

// Lets at most `burst` lines a second through, and tells how many it held back. One per message.
class LogLimiter {
 public:
  constexpr explicit LogLimiter(std::uint32_t burst = 1) : burst_(burst) {}

  // Logs `line`, or counts it. Thread-safe.
  void log(LogLevel level, std::string_view line);

 private:
  const std::uint32_t burst_;
  std::atomic<std::int64_t> next_ns_{0};
  std::atomic<std::uint32_t> lines_{0};  // of this second, that wanted to get through
  std::atomic<std::uint64_t> held_back_{0};
};

}  // namespace tuza
