// Header fields that are lists, of a request or of a response: several fields of a name are one list (RFC 9110 5.3). Thread-safe; the
// elements are views of the fields.
#pragma once

#include <tuza/http/header_range.h>
#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/list.h>

#include <string>
#include <string_view>

namespace tuza::http {

// Calls `visit` with each element that is not empty.
template <class Visit>
void each_element(ReceivedHeaders headers, std::string_view name, Visit visit) {
  for (const HeaderField field : headers) {
    if (!equals_ignoring_case(field.name, name)) continue;
    for (std::string_view rest = field.value; !rest.empty();) {
      if (const std::string_view element = take_item(rest, ','); !element.empty()) visit(element);
    }
  }
}

inline bool lists(ReceivedHeaders headers, std::string_view name, std::string_view wanted) {
  bool found = false;
  each_element(headers, name, [&](std::string_view e) { found = found || equals_ignoring_case(e, wanted); });
  return found;
}

// All fields of that name as one list.
inline std::string joined(ReceivedHeaders headers, std::string_view name) {
  std::string all;
  for (const HeaderField field : headers) {
    if (!equals_ignoring_case(field.name, name)) continue;
    if (!all.empty()) all += ',';
    all += field.value;
  }
  return all;
}

}  // namespace tuza::http
