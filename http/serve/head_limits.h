// The part of a server's options that the parser of heads is about.
#pragma once

#include <tuza/http/options.h>
#include <tuza/http/wire/limits.h>

namespace tuza::http {

inline HeadLimits head_limits(const ServerOptions& options) {
  return {.start_line_bytes = options.request_line_bytes_max,
          .head_bytes = options.head_bytes_max,
          .fields = options.headers_max};
}

}  // namespace tuza::http
