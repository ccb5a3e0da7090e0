// Public header, part of <tuza/http.h>.
//
// An access log in the usual formats: one line per request, to a function of yours.
//
//     app.use(tuza::http::access_log({.format = tuza::http::AccessLogFormat::kCombined,
//                                     .write = [](std::string_view line) { std::fwrite(...); }}));
//
//     kCommon    192.0.2.1 - ada [22/Nov/2026:02:52:30 +0000] "GET /items/7 HTTP/1.1" 200 512
//     kCombined  the same, and "https://example.com/" "curl/8.5"
//     kJson      {"time":"2026-11-22T02:52:30.123Z","remote":"192.0.2.1:54102","method":"GET","target":"/items/7",
//                 "pattern":"GET /items/{id}","status":200,"bytes":512,"duration_us":133,"request_id":"4bf9...",
//                 "referer":"...","user_agent":"curl/8.5"}          as one line; without what there is not
//
// Text from outside cannot end a line or a quoted field, nor change how a terminal shows it: quotes, control characters,
// line separators, characters of direction and bytes that are not UTF-8 are escaped. Long texts are cut. The user is that
// of basic_auth() if it is further inside. The status is 0 if the handler ended by goexit().
//
// Requests that the server refuses reach no middleware; refused_log() makes the lines for them:
//
//     const tuza::http::AccessLogOptions log{.write = [](std::string_view line) { std::fwrite(...); }};
//     app.use(tuza::http::access_log(log));
//     tuza::http::ServerOptions options{.on_refused = tuza::http::refused_log(log)};
//
//     192.0.2.1 - - [22/Nov/2026:02:52:30 +0000] "GET /a b HTTP/1.1" 400 - "-" "-"
//     {"time":"2026-11-22T02:52:30.123Z","remote":"192.0.2.1:54102","request":"GET /a b HTTP/1.1","status":400,
//      "reason":"malformed request line"}
//
// The log of a tuza::App (http.access_log, framework/access_log.h) goes to its log; this middleware is for files that other
// programs read, and for servers without an App.
#pragma once

#include <tuza/http/middleware.h>
#include <tuza/http/refused_request.h>

#include <cstdint>
#include <functional>
#include <string_view>

namespace tuza::http {

enum class AccessLogFormat : std::uint8_t { kCommon, kCombined, kJson };

struct AccessLogOptions {
  AccessLogFormat format = AccessLogFormat::kCombined;
  // Gets each line, with its line end, after the handler has returned; on the handler's goroutine. Must be thread-safe, and
  // must not throw. Empty: nothing is logged, and requests pay nothing.
  std::function<void(std::string_view line)> write{};
};

[[nodiscard]] Middleware access_log(AccessLogOptions options);
// For access logs of one's own: this request has its line, and ServerOptions::on_refused is not told of it.
void set_logged(const Request& request);
// For ServerOptions::on_refused.
[[nodiscard]] std::function<void(const RefusedRequest&)> refused_log(AccessLogOptions options);

}  // namespace tuza::http
