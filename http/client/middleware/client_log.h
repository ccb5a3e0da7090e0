// Public header, part of <tuza/http.h>.
//
// Middleware of a client: a line for each request, to the log of the runtime or to a function of yours.
//
//     tuza::http::Client client({.middleware = {tuza::http::client_log()}});
//     tuza::http::Client other({.middleware = {tuza::http::client_log({.write = [](std::string_view line) {
//       std::fwrite(line.data(), 1, line.size(), stdout);
//     }})}});
//
//     kText    GET https://api.example/items?page=***&sort=name 200 133us
//              GET https://api.example/items - 10000000us "dial api.example:443: deadline exceeded"
//     kJson    {"time":"2026-11-22T02:52:30.123Z","method":"GET","url":"https://api.example/items","status":200,
//               "duration_us":133}                       as one line; "error" in place of "status" without a response
//
// A URL is shown without the values of its query, of which one may be a key or a token, except those of the parameters named in
// `shown`. Paths are shown as they are. Text of the server cannot end a line or a quoted field, as in access_log(). The duration
// ends with the head of the response: the body is the caller's to read.
//
// Outside of retry() a line is a call with all its tries, inside it is a try. A redirect has a line of its own.
#pragma once

#include <tuza/http/client.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http {

enum class ClientLogFormat : std::uint8_t { kText, kJson };

struct ClientLogOptions {
  ClientLogFormat format = ClientLogFormat::kText;
  // Parameters of queries whose values are shown.
  std::vector<std::string> shown{};
  // Gets each line, with its line end, on the caller's goroutine. Must be thread-safe, and must not throw. Empty:
  // tuza::log_line() gets it (sched/log.h), which is an App's log, or standard error.
  std::function<void(std::string_view line)> write{};
};

[[nodiscard]] ClientMiddleware client_log(ClientLogOptions options = {});

}  // namespace tuza::http
