#include <tuza/http/serve/error_fields.h>

#include <tuza/http/wire/chars.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace tuza::http {
namespace {

constexpr std::array<std::string_view, 12> kOfTheBody{
    "Content-Type",  "Content-Encoding",    "Content-Language", "Content-Location",
    "Content-Range", "Content-Disposition", "Content-Digest",   "Repr-Digest",
    "ETag",          "Last-Modified",       "Cache-Control",    "Expires"};

bool forbids_storing(std::string_view value) {
  constexpr std::string_view kNoStore = "no-store";
  for (std::size_t at = 0; at + kNoStore.size() <= value.size(); ++at) {
    if (equals_ignoring_case(value.substr(at, kNoStore.size()), kNoStore)) return true;
  }
  return false;
}

bool is_of_body(std::string_view line) {
  const std::string_view name = line.substr(0, line.find(':'));
  const auto is_name = [name](std::string_view one) { return equals_ignoring_case(name, one); };
  if (std::ranges::none_of(kOfTheBody, is_name)) return false;
  return !is_name("Cache-Control") || !forbids_storing(line.substr(name.size()));
}

}  // namespace

void drop_fields_of_body(std::string& fields) {
  for (std::size_t at = 0; at < fields.size();) {
    const std::size_t size = fields.find("\r\n", at) + 2 - at;
    if (is_of_body(std::string_view(fields).substr(at, size))) {
      fields.erase(at, size);
    } else {
      at += size;
    }
  }
}

}  // namespace tuza::http
