// Public header, part of <tuza/http.h>.
//
// Middleware of a client: requests go on with the trace of the context (W3C Trace Context, field traceparent).
//
//     app.use(tuza::http::request_id({.in_context = true}));           // the trace of each request that comes in ...
//     tuza::http::Client client({.middleware = {tuza::http::client_trace()}});
//     ...
//     client.get(req.context(), "https://stock.example/items");        // ... goes out with those of its handler
//
// The field is kTraceparent of the call's context; a request whose context has none goes out as it is, and so does one with a
// traceparent of its own.
#pragma once

#include <tuza/http/client.h>
#include <tuza/http/middleware/request_id.h>

namespace tuza::http {

[[nodiscard]] ClientMiddleware client_trace();

}  // namespace tuza::http
