// Public header.
//
// Asynchronous logging through spdlog: one thread writes, and callers never wait for it.
//
//     const tuza::Logging logging;                 // in main, before tuza::run
//     spdlog::info("ready");
//
// tuza::App creates a Logging itself. Messages of the runtime (sched/log.h) take the same path. The queue between
// the program and the writing thread is bounded. If it is full, lines are dropped, and goroutines continue. A
// stalled console, a pipe without a reader or a full disk also loses lines, but stops neither the program nor its
// exit. The number of dropped lines is reported by a log line as soon as output is possible again, and by
// log_lines_dropped(). After the Logging has been destroyed, spdlog's lines go to standard error; a line is lost if
// its writer would have to wait longer than half a second.
//
// A record is one line: control characters in it are escaped, as \x0a.
#pragma once

#include <tuza/sched/result.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tuza {

struct LogOptions {
  std::string level = "info";   // trace, debug, info, warning, error, off
  bool json = false;            // one JSON object per line
  std::string file = "stderr";  // "stderr", or a file to append to
  std::size_t queue_lines = 8192;
};

// Logging is active while this object lives. At most one may exist at a time.
class Logging {
 public:
  // Logs to standard error. Throws std::system_error if no thread is available.
  Logging();
  // Fails if the file cannot be opened, or no thread is available.
  static Result<std::unique_ptr<Logging>> open(const LogOptions& options);
  // Writes the queued lines as far as the output accepts them; gives up after one second.
  ~Logging();
  Logging(const Logging&) = delete;
  Logging& operator=(const Logging&) = delete;

 private:
  struct Begun {};
  explicit Logging(Begun) {}
};

// The following functions are thread-safe. Without a Logging there is nothing to reopen or to drain, and a level
// applies until the next Logging begins.

// Sets the level of what is logged from now on. False: there is no level with this name.
bool set_log_level(std::string_view level);
// Opens the log file again after it was moved away. On an error the old file stays in use. May block on the file.
Result<void> reopen_log();
// Waits until all logged lines have been written or lost; false if that takes longer than `limit`. Blocks the
// thread: meant for the end of a program.
bool drain_log(std::chrono::milliseconds limit);
// Number of lines lost since the process began, because the queue was full or the output refused them.
[[nodiscard]] std::uint64_t log_lines_dropped();

}  // namespace tuza
