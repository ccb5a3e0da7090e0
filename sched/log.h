// Public header, part of <tuza/tuza.h>.
//
// The log of the runtime: one line at a time, to a sink of the program's choice.
//
// The scheduler and the poller report rare events (no guard pages left, out of descriptors) through this
// hook. They use no logging library, so that the runtime depends on none. Default sink: standard error, with control
// characters as \xNN, because names and addresses come from outside; a line that cannot be written there within a moment is
// lost.
// Thread-safe. Must not be called with a runtime lock held.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <atomic>
#include <cstdint>
#include <string_view>

namespace tuza {

enum class LogLevel : std::uint8_t { kInfo, kWarning, kError };

// Receives each line, without a line end, and with what peers have sent as it is. Any thread may call it, inside the
// runtime: it must not park, call back into Tuza, or throw anything but std::bad_alloc; the line then goes to standard
// error. Null restores the default.
using LogSink = void (*)(LogLevel level, std::string_view line);
void set_log_sink(LogSink sink);

void log_line(LogLevel level, std::string_view line);

// Passes at most `burst` lines per second, and reports how many it held back. Use one limiter per message.
class LogLimiter {
 public:
  constexpr explicit LogLimiter(std::uint32_t burst = 1) : burst_(burst) {}

  // Logs `line`, or counts it as held back. Thread-safe.
  void log(LogLevel level, std::string_view line);

 private:
  const std::uint32_t burst_;
  std::atomic<std::int64_t> next_ns_{0};
  std::atomic<std::uint32_t> lines_{0};  // lines of this second that reached the limit check
  std::atomic<std::uint64_t> held_back_{0};
};

}  // namespace tuza
