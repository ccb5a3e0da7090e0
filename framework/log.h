// Public header.
//
// Asynchronous logging through spdlog: one thread writes, and callers never wait for it.
//
//     #include <spdlog/spdlog.h>
//     const tuza::Logging logging;                 // in main, before tuza::run
//     spdlog::info("ready");
//
// tuza::App creates a Logging itself. It makes its logger the default logger of spdlog, which is one library in the
// whole process: tuza::framework brings the compiled one along (SPDLOG_COMPILED_LIB). spdlog::set_default_logger() after
// that moves only the lines that the program logs. Messages of the runtime (sched/log.h), of App and of the access log take
// the same path without a logger of spdlog; add_log_sink() sees them all.
//
// The queue between
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
#include <functional>
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

namespace logging {
struct Sink;
}
using LogSinkHandle = logging::Sink*;  // for remove_log_sink(); valid for the rest of the process

// Logging is active while this object lives. At most one may exist at a time.
class Logging {
 public:
  // Logs to standard error. Throws std::system_error if no thread is available.
  Logging();
  // Fails if the file cannot be opened, or no thread is available.
  [[nodiscard]] static Result<std::unique_ptr<Logging>> open(const LogOptions& options);
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

// Passes each line that is logged from now on to `sink` as well, beside the file: those of spdlog, the runtime, App and the
// access log, one at a time, with the line end, in the format of the Logging. The sink runs on the writing thread, outside
// tuza::run, so that it may block: a slow one costs lines, as a slow output does, and never holds up a goroutine. It must not
// log; its exceptions are dropped. It stays, and must be callable, until it is removed. Usually called in main, before
// App::run() or the Logging.
LogSinkHandle add_log_sink(std::function<void(std::string_view line)> sink);
// When it returns, the sink is not called any more, and the function is destroyed. Lines that are still queued do not
// reach it: drain_log() first. Blocks the thread while a sink runs, and so must not be called by one.
void remove_log_sink(LogSinkHandle sink);
// Sets the level of what is logged from now on. False: there is no level with this name.
bool set_log_level(std::string_view level);
// Opens the log file again after it was moved away. On an error the old file stays in use. May block on the file.
[[nodiscard]] Result<void> reopen_log();
// Waits until all logged lines have been written or lost; false if that takes longer than `limit`. Blocks the
// thread: meant for the end of a program.
bool drain_log(std::chrono::milliseconds limit);
// Number of lines lost since the process began, because the queue was full or the output refused them.
[[nodiscard]] std::uint64_t log_lines_dropped();

}  // namespace tuza
