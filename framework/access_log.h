// Public header.
//
// The access log: one log line per request, written after the request has been answered.
//
//     2026-11-22T02:52:30.123Z info    127.0.0.1:54102 "GET /items/7" 200 512B 133us "curl/8.5"
//     {"time":"...","level":"info","event":"request","remote":"127.0.0.1:54102","method":"GET",
//      "target":"/items/7","pattern":"GET /items/{id}","status":200,"bytes":512,"duration_us":133,
//      "user_agent":"curl/8.5"}
//
// The object is written as one line. `bytes` counts the response body. `duration` is the handler's time, measured
// from the complete request head. The status is 0 if the handler ended with goexit(). Without a User-Agent header
// the object has no user_agent, outside of a router no pattern. The id of http::request_id() follows if that middleware
// is further inside or outside: "request_id", and in the console the last word. Lines have the level info, and log.level
// must admit it; without a Logging nothing is written. The middleware never waits for the log.
//
// tuza::App wraps its router in this middleware if http.access_log is true. Requests that the server refuses reach no
// middleware; an App writes a line for them, too:
//
//     2026-11-22T02:52:30.123Z info    127.0.0.1:54102 "GET /a b HTTP/1.1" 400 refused: malformed request line
//     {"time":"...","level":"info","event":"refused","remote":"127.0.0.1:54102","request":"GET /a b HTTP/1.1",
//      "status":400,"reason":"malformed request line"}
#pragma once

#include <tuza/http/middleware.h>
#include <tuza/http/refused_request.h>

namespace tuza {

// Install this middleware outermost, so that it also times the other middleware. A service that also collects
// metrics should use Metrics::middleware(true), which does both at a lower cost.
[[nodiscard]] http::Middleware access_log();

// Writes the line of a refused request: for http::ServerOptions::on_refused.
void log_refused(const http::RefusedRequest& refused);

}  // namespace tuza
