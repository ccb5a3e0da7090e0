// What answers requests.
#pragma once

#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>

#include <functional>

namespace tuza::http {

// Called on the connection's goroutine, for many connections at once: it must be thread-safe. It may block,
// park, stream and throw; an exception becomes a 500, if the response has not begun, and a line in the log.
using Handler = std::move_only_function<void(Request&, ResponseWriter&) const>;

}  // namespace tuza::http
