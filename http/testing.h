// Public header.
//
// Calls a handler without a server and without a socket. For tests; <tuza/http.h> does not include it.
//
//     auto res = tuza::http::testing::call(router, "GET /items/7");
//     assert(res.status == 200 && res.body == "item 7\n");
//
//     auto made = tuza::http::testing::call(router, "POST /items",
//                                           {.headers = {{"Authorization", "Bearer 1"}}, .body = R"({"name": "x"})"});
//     assert(made.header("Location") == "/items/8");
//
// The request goes through the parser and the rules of the server: a malformed one, or a body beyond the limit, gets
// the status that the server answers. Middleware, routers and file servers are handlers, too.
//
// A body may arrive in pieces, and the client may go away in the middle:
//
//     auto res = tuza::http::testing::call(feed, "GET /feed", {.client_reads = 100});
//     assert(!res.complete);                           // feed's writes have failed, and its context has ended
//
// Works inside tuza::run, where the handler runs on a goroutine of its own, as in a server, so that goexit() ends only that;
// and outside of it, if the handler does not park. Thread-safe.
#pragma once

#include <tuza/http/handler.h>
#include <tuza/http/options.h>
#include <tuza/netpoll/endpoint.h>
#include <tuza/netpoll/tls.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http::testing {

using HeaderFields = std::vector<std::pair<std::string, std::string>>;

struct CallOptions {
  HeaderFields headers{};  // besides Host and, if there is a body, Content-Length
  std::string body{};
  // What arrives behind `body`, piece by piece: called when the handler reads and has all that has arrived. It may park, so
  // that the handler waits. "" ends the body; an error breaks the connection off there. The body is chunked, unless `headers`
  // has a Content-Length.
  std::function<Result<std::string>()> next_piece{};
  // The client goes away when it has so many bytes of the response's body; at 0 it has gone before the handler runs. The
  // request's context then ends with Errc::kClosed, what is written behind fails, and the body breaks off.
  std::optional<std::size_t> client_reads{};
  HeaderFields trailers{};              // behind the body, which is then chunked
  bool chunked = false;                 // the body has no length that the handler could know
  Context context{};                    // what Request::context() is made from
  Context shutdown{};                   // ends when the server of this request begins to shut down
  std::optional<net::Endpoint> peer{};  // the client's address; 192.0.2.1:1234 if not given
  std::optional<net::TlsInfo> tls{};    // nullopt: a plain connection
  ServerOptions server{};               // its limits
};

struct InterimResponse {
  int status = 0;
  HeaderFields headers{};
};

struct CallResult {
  int status = 0;  // 0: the client gets no response, because it has gone, or the handler has called goexit()
  HeaderFields headers;  // in the order set; Content-Length if the length is known
  std::string body;
  std::vector<std::string> pieces;  // the body, divided where the handler has called flush()
  HeaderFields trailers;
  std::vector<InterimResponse> interim;  // before the response: ResponseWriter::early_hints()
  bool streamed = false;                 // in pieces, the first of them before the handler returned
  bool closes = false;                   // the connection would be closed after this response
  bool complete = true;                  // false: the client would see the response break off
  std::exception_ptr exception;  // what the handler has thrown; status and body are what the client gets

  // The first field of that name, ignoring case; nullopt if there is none.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
};

// `request`: method and target, "GET /items/7?full=1".
[[nodiscard]] CallResult call_handler(const Handler& handler, std::string_view request,
                                      const CallOptions& options);

// `handler`: a Handler, or anything that can be one; it is not copied.
template <class H>
[[nodiscard]] CallResult call(const H& handler, std::string_view request, const CallOptions& options = {}) {
  return call_handler([&handler](Request& req, ResponseWriter& res) { handler(req, res); }, request, options);
}

}  // namespace tuza::http::testing
