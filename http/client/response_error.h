// What is wrong with an answer, as an error: "read response: malformed status".
#pragma once

#include <tuza/sched/result.h>

#include <string>
#include <string_view>

namespace tuza::http {

// Without the general text of the code, which is the same for a malformed body and one that is too large.
inline Error response_error(Errc code, std::string_view what) {
  return Error::from_text(make_error_code(code), std::string("read response: ").append(what));
}

}  // namespace tuza::http
