// How large a head may be, in either direction.
#pragma once

#include <cstddef>

namespace tuza::http {

struct HeadLimits {
  std::size_t start_line_bytes = 8 << 10;  // of a request's target, of a response's reason
  std::size_t head_bytes = 32 << 10;       // start line and all fields
  std::size_t fields = 100;                // at most kHeadersLimit
};

}  // namespace tuza::http
