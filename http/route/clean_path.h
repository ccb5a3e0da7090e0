// Paths that mean the same as a shorter one.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tuza::http {

// `path` (percent-encoded, begins with "/") without empty segments, "." and "..", encoded ones included; nullopt if it has
// none. A slash at the end stays.
std::optional<std::string> clean_path(std::string_view path);

}  // namespace tuza::http
