// The functions to which the writing thread passes each line, beside the output (add_log_sink() in framework/log.h).
//
// Thread-safe. A Sink is never freed: a writing thread that was given up at the end of its Logging may still look at it.
#pragma once

#include <functional>
#include <string_view>

namespace tuza::logging {

struct Sink;

// Does not wait for a sink that is running.
Sink* add_sink(std::function<void(std::string_view)> pass);
// Waits for a sink that is running, whichever it is. Then this one is not called any more, and its function is destroyed.
void remove_sink(Sink* sink);
// Passes each of these lines, with its line end, to all sinks. Only writing threads call it.
void pass_to_sinks(std::string_view lines);

}  // namespace tuza::logging
