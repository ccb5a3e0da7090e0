// Public header, part of <tuza/http.h>.
//
// Middleware: wraps a handler, and sees each request before the handler and each response after it.
//
//     http::Middleware timed = [](http::Handler next) -> http::Handler {
//       return [next = std::move(next)](http::Request& req, http::ResponseWriter& res) {
//         const auto begun = std::chrono::steady_clock::now();
//         http::observe(next, req, res, [&](int status) {
//           note(req.method_name(), status, res.bytes_written(), std::chrono::steady_clock::now() - begun);
//         });
//       };
//     };
//     http::Server server(http::with(std::move(router), std::move(timed), std::move(authenticated)));
//
// Requests that the server refuses before it has parsed them (malformed, too slow, too large a head) reach no
// middleware: Server::stats() counts them, and ServerOptions::on_refused is told of each. One whose body is too large does,
// and its handler cannot read the body: the server answers with 413 when middleware has returned. That answer, and all
// others that the server makes after middleware has run, keep header fields as ResponseWriter::error() does.
#pragma once

#include <tuza/http/detail/head_hook.h>
#include <tuza/http/handler.h>
#include <tuza/http/status_error.h>
#include <tuza/sched/detail/move_only_function.h>

#include <exception>
#include <type_traits>
#include <utility>

namespace tuza::http {

// Makes a handler that does additional work around the handler it is given. Called once, when the service is
// put together; the returned handler must be thread-safe, like every handler.
using Middleware = MoveOnlyFunction<Handler(Handler)>;

// `handler` wrapped in all the given middleware. The first is the outermost: it sees the request first and
// the response last.
inline Handler with(Handler handler) { return handler; }
template <class First, class... Rest>
Handler with(Handler handler, First&& first, Rest&&... rest) {
  return std::forward<First>(first)(with(std::move(handler), std::forward<Rest>(rest)...));
}

// Calls `handler`, and then done(status) with the status that the client gets. If the handler throws, the
// status is 500, or that of a StatusError, and the exception propagates to the server, which answers so. If the handler ends by
// goexit(), which leaves no answer, the status is 0. A response that has begun keeps its status, and is cut
// off. `done` must not throw. Parks if the handler does.
template <class Done>
void observe(const Handler& handler, Request& request, ResponseWriter& response, Done&& done) {
  try {
    handler(request, response);
  } catch (const StatusError& e) {
    done(response.head_sent() ? response.status_code() : e.status());
    throw;
  } catch (...) {
    const bool thrown = std::current_exception() != nullptr;  // no C++ exception: goexit()
    done(response.head_sent() ? response.status_code() : thrown ? 500 : 0);
    throw;
  }
  done(response.status_code());
}

// Calls `handler`, and change(response) once, at the last moment for the status and the fields: when a body begins to
// stream, or when `handler` has returned. So it sees what the handler has set, and may set, add and remove fields:
//
//     http::before_head(next, req, res, [&](http::ResponseWriter& last) { last.set_header("Server-Timing", timing()); });
//
// If the handler throws, its fields are on the server's answer, whose status is not set yet. It is not called for connections that
// are taken over. If several are around a handler, the innermost is called first. It writes nothing of the body. It may
// throw, as handlers do. Parks if the handler or `change` does.
template <class Change>
void before_head(const Handler& handler, Request& request, ResponseWriter& response, Change&& change) {
  detail::HeadHook hook(
      request, response,
      [](void* function, ResponseWriter& last) {
        (*static_cast<std::remove_reference_t<Change>*>(function))(last);
      },
      &change);
  try {
    handler(request, response);
  } catch (...) {
    if (std::current_exception() != nullptr) hook.thrown();  // otherwise goexit()
    throw;
  }
  hook.returned();
}

}  // namespace tuza::http
