// An error value for a request that cannot be served: the status, the message, the position of the error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tuza::http {

struct BadRequest {
  int status = 400;
  std::string_view text;   // public: part of the response; a literal
  std::size_t offset = 0;  // from the beginning of the request to the error, in bytes
};

}  // namespace tuza::http
