// The queue of the Logging that lives; null if there is none.
#pragma once

#include <tuza/framework/log/line_queue.h>
#include <tuza/sched/log.h>

namespace tuza::logging {

LineQueue* current_queue();
// Whether lines of that level are wanted.
bool wants(LogLevel level);

}  // namespace tuza::logging
