// The Vary field of a response (RFC 9110 12.5.5): what of the request has chosen it. Programs, middleware and the file server
// add to it without knowing of each other.
#pragma once

#include <tuza/http/header_range.h>
#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/list.h>

#include <string_view>

namespace tuza::http {

// Whether the value of a Vary field has it.
inline bool varies_by(std::string_view value, std::string_view name) {
  while (!value.empty()) {
    const std::string_view item = take_item(value, ',');
    if (item == "*" || equals_ignoring_case(item, name)) return true;
  }
  return false;
}
inline bool varies_by(HeaderLines fields, std::string_view name) {
  for (const HeaderField field : fields) {
    if (equals_ignoring_case(field.name, "Vary") && varies_by(field.value, name)) return true;
  }
  return false;
}

// `response` is a ResponseWriter or an Exchange, and `fields` are what has been set for it.
template <class Response>
void add_vary(Response& response, HeaderLines fields, std::string_view name) {
  if (!varies_by(fields, name)) response.add_header("Vary", name);
}

}  // namespace tuza::http
