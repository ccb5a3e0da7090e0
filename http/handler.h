// Public header, part of <tuza/http.h>.
//
// The function type that answers requests.
#pragma once

#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>

#include <functional>

namespace tuza::http {

// Called on the connection's goroutine, for many connections at once: a handler must be thread-safe. It may
// block, park, stream and throw. An exception is logged, becomes a 500 if the response has not begun, and
// closes the connection; the close is a reset if the response has begun and its end is marked by the end of
// the connection (possible in HTTP/1.0). goexit() also closes the connection, without an answer.
//
// Request and ResponseWriter become invalid when the handler returns: goroutines started by the handler must
// not use them later.
//
// Responses to pipelined requests are sent together: when the last received request has been answered, or
// when the responses exceed 64 KiB. A fast response may therefore wait for a slow one behind it;
// ResponseWriter::flush() sends at once.
using Handler = std::move_only_function<void(Request&, ResponseWriter&) const>;

}  // namespace tuza::http
