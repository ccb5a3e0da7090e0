// A field that may stand there once. Internal.
#pragma once

#include <tuza/http/header_range.h>
#include <tuza/http/request.h>
#include <tuza/http/wire/chars.h>

#include <optional>
#include <string_view>

namespace tuza::http {

// nullopt if there is none, and if there are several: it is unclear which one a proxy in front has looked at, or has written.
inline std::optional<std::string_view> only_header(const ReceivedHeaders& headers, std::string_view name) {
  std::optional<std::string_view> only;
  for (const HeaderField field : headers) {
    if (!equals_ignoring_case(field.name, name)) continue;
    if (only) return std::nullopt;
    only = field.value;
  }
  return only;
}
inline std::optional<std::string_view> only_header(const Request& request, std::string_view name) {
  return only_header(request.headers(), name);
}

}  // namespace tuza::http
