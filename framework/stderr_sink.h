// Where log lines leave the process: a descriptor that others may have stopped reading, or closed.
//
// Before each piece it asks whether there is room, and waits at most 100 ms for some; not at all once it has
// waited in vain, until there is room again. What finds none is dropped, and the next line that gets through
// says how many were. So whoever writes, and the end of the process, is never held up for long. A closed pipe
// swallows everything; SIGPIPE is its caller's business.
//
// Thread-safe.
#pragma once

#include <memory>

namespace spdlog::sinks {
class sink;
}

namespace tuza {

std::shared_ptr<spdlog::sinks::sink> make_stderr_sink(int fd = 2);

}  // namespace tuza
