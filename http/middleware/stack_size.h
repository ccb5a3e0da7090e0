// Public header, part of <tuza/http.h>.
//
// Runs the handlers behind it on a larger stack than ServerOptions::stack_bytes gives all connections: for what recurses as
// deep as a client likes, such as std::regex, whose depth is that of the text.
//
//     router.handle("GET /find", http::with(find, http::stack_size(8 << 20)));
//
// The handler runs on a goroutine of its own, with goroutine-locals of its own, while that of the connection waits for it:
// a few microseconds for each request. Exceptions and goexit() pass through. 503 if there is no memory for the stack.
#pragma once

#include <tuza/http/middleware.h>

#include <cstddef>

namespace tuza::http {

// Rounded as GoOptions::stack_bytes; one that go() refuses is a std::invalid_argument.
[[nodiscard]] Middleware stack_size(std::size_t bytes);

}  // namespace tuza::http
