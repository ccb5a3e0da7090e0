// From the path of a request to a path below a folder. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tuza::http {

// `encoded` is what follows the prefix, as it came. Its segments are taken apart first and decoded then.
// Nothing if one of them is empty (the last may be), "." or "..", has a slash or a zero in it, begins with a
// dot (but .well-known) unless `dots`, or is no proper percent-encoding. "" and "dir/" come back as they are.
std::optional<std::string> file_path(std::string_view encoded, bool dots);

}  // namespace tuza::http
