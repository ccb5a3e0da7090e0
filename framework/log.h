// Public header.
//
// Logging through spdlog: one thread writes, nobody waits for it.
//
//     const tuza::Logging logging;                 // in main, before tuza::run
//     spdlog::info("ready");
//
// tuza::App does that by itself. What the runtime has to say (sched/log.h) goes the same way. The queue
// between the program and the writing thread is bounded; when it is full, lines are dropped, and goroutines
// go on. A console that has stalled, a pipe nobody reads or a full disk costs lines, too, but stops neither
// the program nor its end. How many were dropped is said in the next line that gets through, and by
// log_lines_dropped(). When the Logging has ended, spdlog's lines go to standard error, unless their writer
// waits for longer than half a second.
//
// A line is one record: control characters in it are spelled out, as \x0a.
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
  bool json = false;            // an object per line
  std::string file = "stderr";  // "stderr", or a file to append to
  std::size_t queue_lines = 8192;
};

// Logging while this lives. One at a time.
class Logging {
 public:
  // To standard error. Throws std::system_error if there is no thread to be had.
  Logging();
  // An error: the file cannot be opened, or there is no thread to be had.
  static Result<std::unique_ptr<Logging>> open(const LogOptions& options);
  // Writes what is queued, as far as there is room for it; gives up after a second.
  ~Logging();
  Logging(const Logging&) = delete;
  Logging& operator=(const Logging&) = delete;

 private:
  struct Begun {};
  explicit Logging(Begun) {}
};

// Thread-safe, all of them. While there is no Logging there is nothing to reopen or to drain, and a level
// lasts until one begins.

// Changes what is logged from now on. False: there is no level of that name.
bool set_log_level(std::string_view level);
// Opens the log file once more, after it was moved away. An error: the old one is kept. May block on the
// file.
Result<void> reopen_log();
// Waits until what was logged has been written, or was lost; false if that has not happened within `limit`.
// Blocks the thread: for the end of a program.
bool drain_log(std::chrono::milliseconds limit);
// Lines that were lost since the process began: the queue was full, or the output refused them.
[[nodiscard]] std::uint64_t log_lines_dropped();

}  // namespace tuza
