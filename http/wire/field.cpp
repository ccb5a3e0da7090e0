#include <tuza/http/wire/field.h>

#include <tuza/http/wire/chars.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

namespace tuza::http {

void require_one_line(std::string_view name, std::string_view value) {
  if (has_control_char(value)) [[unlikely]] {
    throw std::invalid_argument("control character in the value of " + std::string(name));
  }
}

void require_field(std::string_view name, std::string_view value) {
  const bool token =
      !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return is(c, kTokenChar); });
  if (!token) throw std::invalid_argument("malformed header field name");
  require_one_line(name, value);
}

bool may_be_trailer(std::string_view name) {
  constexpr std::array<std::string_view, 14> kOnlyBefore{
      "Transfer-Encoding", "Content-Length", "Trailer",      "Connection",    "Host",
      "Cache-Control",     "Expect",         "TE",           "Authorization", "Set-Cookie",
      "Content-Encoding",  "Location",       "Content-Type", "Content-Range"};
  return std::ranges::none_of(kOnlyBefore,
                              [name](std::string_view one) { return equals_ignoring_case(name, one); });
}

}  // namespace tuza::http
