// Public header, part of <tuza/http.h>.
//
// What answers requests.
#pragma once

#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>

#include <functional>

namespace tuza::http {

// Called on the connection's goroutine, for many connections at once: it must be thread-safe. It may block,
// park, stream and throw; an exception becomes a 500, if the response has not begun, and a line in the log,
// and the connection is closed; with a reset, if a response has begun that ends with the connection (HTTP/1.0
// has those). goexit() closes the connection, too, without an answer.
//
// Request and ResponseWriter die when it returns: goroutines that it has started must not use them later.
//
// Responses to pipelined requests leave together: when the last request that has arrived is answered, or when
// they make up 64 KiB. So a fast one may wait for a slow one behind it; ResponseWriter::flush() sends at
// once.
using Handler = std::move_only_function<void(Request&, ResponseWriter&) const>;

}  // namespace tuza::http
