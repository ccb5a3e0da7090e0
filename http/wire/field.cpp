#include <tuza/http/wire/field.h>

#include <tuza/http/wire/chars.h>

#include <algorithm>
#include <array>
#include <functional>
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

bool lies_in(std::string_view part, const std::string& whole) {
  return !part.empty() && std::less_equal<>()(whole.data(), part.data()) &&
         std::less<>()(part.data(), whole.data() + whole.size());
}

// One growth, and no call for the texts in between: four times append() takes as long as the rest of a small response's
// fields.
void append_field_line(std::string& out, std::string_view name, std::string_view value) {
  constexpr std::string_view kColon = ": ", kEnd = "\r\n";
  const std::size_t had = out.size();
  const std::size_t size = had + name.size() + kColon.size() + value.size() + kEnd.size();
  out.resize_and_overwrite(size, [&](char* begin, std::size_t) {
    char* at = begin + had;
    at += name.copy(at, name.size());
    at += kColon.copy(at, kColon.size());
    at += value.copy(at, value.size());
    kEnd.copy(at, kEnd.size());
    return size;
  });
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
