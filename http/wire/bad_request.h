// A request that cannot be served as a value: what to answer, what to say, where it went wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tuza::http {

struct BadRequest {
  int status = 400;
  std::string_view text;   // public: goes into the response; a literal
  std::size_t offset = 0;  // bytes from the beginning of the request to the problem
};

}  // namespace tuza::http
