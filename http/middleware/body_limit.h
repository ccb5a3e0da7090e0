// Public header, part of <tuza/http.h>.
//
// A limit on request bodies for some routes, in place of the server's body_bytes_max, and below or above it.
//
//     router.use(tuza::http::body_limit(64 << 10));
//     auto uploads = router.group("/uploads");
//     uploads.use(tuza::http::body_limit(100 << 20));     // the innermost counts
//
// Reading a larger body fails: at once if its length is announced, otherwise beyond the limit. The answer is then 413 if the
// handler has not begun one. A handler that does not read is called whatever the length; beyond the server's limit, only up to
// the largest of these.
#pragma once

#include <tuza/http/middleware.h>

#include <cstdint>

namespace tuza::http {

[[nodiscard]] Middleware body_limit(std::uint64_t bytes_max);

}  // namespace tuza::http
