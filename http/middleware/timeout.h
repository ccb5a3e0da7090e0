// Public header, part of <tuza/http.h>.
//
// Gives the handlers behind it a deadline: Request::context() ends then, with Errc::kTimeout.
//
//     auto api = router.group("/api");
//     api.use(tuza::http::timeout(2s));
//
// If the handler returns too late and has not begun to answer, the client gets 503; 408 if its body has not come. A handler is
// not interrupted: one that computes, or waits without the context, keeps the client waiting as long as it likes. Its calls
// that read the body and write the response wait no longer, unless they are given another context; an answer that it gives as
// a whole is sent although it is late. An exception stays what it is. Needs tuza::run. Costs a context for each request, and a
// timer; ServerOptions::request_timeout costs neither, for all requests alike.
#pragma once

#include <tuza/http/middleware.h>

#include <chrono>

namespace tuza::http {

// Throws std::invalid_argument if `limit` is not positive.
[[nodiscard]] Middleware timeout(std::chrono::nanoseconds limit);

}  // namespace tuza::http
