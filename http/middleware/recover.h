// Public header, part of <tuza/http.h>.
//
// Answers exceptions of the handlers behind it with a page; without it, the server answers with a line of text and closes
// the connection.
//
//     app.use(tuza::http::recover({.development = config.development}));
//
// The answer is 500 in HTML, JSON or text, as the client accepts it, and keeps the header fields that middleware has set,
// except those of the discarded body. Only in development it shows the exception's type and what(): both may contain
// secrets. The exception is logged as the server does. A StatusError passes, since it is an answer; so does any
// exception after the response has begun, so that the server cuts it off and the client sees the failure; and goexit().
#pragma once

#include <tuza/http/middleware.h>

namespace tuza::http {

struct RecoverOptions {
  bool development = false;
};

[[nodiscard]] Middleware recover(RecoverOptions options = {});

}  // namespace tuza::http
