// Public header, part of <tuza/http.h>.
//
// Gives small responses an ETag, so that a client which has the same body already gets 304 instead of it.
//
//     app.use(tuza::http::etag());
//
// For GET with status 200, if the handler has set no ETag and the body is held back until the handler has returned (up to
// 16 KiB). The tag is a hash of the body (SHA-256): the handler's work is done in any case, only the transfer is saved. A
// response with "Cache-Control: no-store" is left alone. Install it inside compress().
#pragma once

#include <tuza/http/middleware.h>

namespace tuza::http {

[[nodiscard]] Middleware etag();

}  // namespace tuza::http
