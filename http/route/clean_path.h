// Paths that mean the same as a shorter one.
#pragma once

#include <string>
#include <string_view>

namespace tuza::http {

// Whether `path` (percent-encoded, begins with "/") has no empty segments, no "." and no "..", encoded ones included.
[[nodiscard]] bool is_clean(std::string_view path);
// `path` without them. A slash at the end stays.
[[nodiscard]] std::string clean_path(std::string_view path);

}  // namespace tuza::http
