// Access to the queue and the level of the current Logging.
#pragma once

#include <tuza/framework/log/line_queue.h>
#include <tuza/sched/log.h>

namespace tuza::logging {

// The queue of the existing Logging; null if there is none.
LineQueue* current_queue();
// Whether lines of this level are logged.
bool wants(LogLevel level);

}  // namespace tuza::logging
