// Logging through spdlog: one thread writes, nobody waits for it.
//
//     const tuza::Logging logging;                 // in main, before tuza::run
//     spdlog::info("ready");
//
// What the runtime has to say (sched/log.h) goes the same way. The queue between the program and the writing
// thread is bounded; when it is full, the oldest lines are dropped, and goroutines go on. A console that has
// stalled, or a pipe nobody reads, costs lines, too, but neither stops the program nor its end
// (stderr_sink.h).
#pragma once

#include <cstddef>

namespace tuza {

// Logging to standard error while this lives. One at a time.
class Logging {
 public:
  static constexpr std::size_t kQueuedLinesMax = 8192;
  Logging();
  // Writes what is queued, as far as there is room for it.
  ~Logging();
  Logging(const Logging&) = delete;
  Logging& operator=(const Logging&) = delete;
};

}  // namespace tuza
