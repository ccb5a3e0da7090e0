// Public header.
//
// A log line per request, when it has been answered.
//
//     2026-11-22T02:52:30.123Z info    127.0.0.1:54102 "GET /items/7" 200 512B 133us "curl/8.5"
//     {"time":"...","level":"info","event":"request","remote":"127.0.0.1:54102","method":"GET",
//      "target":"/items/7","status":200,"bytes":512,"duration_us":133,"user_agent":"curl/8.5"}
//
// (The object is one line.) `bytes` are of the body, `duration` is the handler's, from the complete head on.
// The status is 0 if the handler has ended by goexit(). A request without User-Agent is an object without
// user_agent. tuza::App puts it around the router if http.access_log is true. Lines of that level must be
// wanted (log.level); where there is no Logging, nothing is written. It never waits for the log.
#pragma once

#include <tuza/http/middleware.h>

namespace tuza {

// To stand outermost, so that it times what other middleware does, too. Beside metrics,
// Metrics::middleware(true) does both for less.
[[nodiscard]] http::Middleware access_log();

}  // namespace tuza
