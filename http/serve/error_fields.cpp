#include <tuza/http/serve/error_fields.h>

#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/list.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace tuza::http {
namespace {

constexpr std::string_view kCacheControl = "Cache-Control";
constexpr std::array<std::string_view, 13> kOfTheBody{
    "Content-Type",   "Content-Encoding", "Content-Language", "Content-Location", "Content-Range",
    "Content-Digest", "Content-MD5",      "Repr-Digest",      "Digest",           "Content-Disposition",
    "ETag",           "Last-Modified",    "Expires"};

// For how long caches may keep the body, in general and by RFC 9213 or before it.
bool is_cache_control(std::string_view name) {
  return equals_ignoring_case(name, "Surrogate-Control") ||
         (name.size() >= kCacheControl.size() &&
          equals_ignoring_case(name.substr(name.size() - kCacheControl.size()), kCacheControl));
}

// no-cache="Set-Cookie" forbids nothing but that field.
bool forbids_reuse(std::string_view list) {
  while (!list.empty()) {
    const std::string_view one = take_item(list, ',');
    if (equals_ignoring_case(one, "no-store") || equals_ignoring_case(one, "no-cache")) return true;
  }
  return false;
}

bool is_of_body(std::string_view line) {
  const std::string_view name = line.substr(0, line.find(':'));
  const auto is_name = [name](std::string_view one) { return equals_ignoring_case(name, one); };
  if (is_cache_control(name))
    return !forbids_reuse(line.substr(name.size() + 1, line.size() - name.size() - 3));
  return std::ranges::any_of(kOfTheBody, is_name);
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
