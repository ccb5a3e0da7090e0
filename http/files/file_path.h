// Converts the path of a request to a path below a folder. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tuza::http {

// `encoded` is the part after the prefix, as received. The path is split into segments before decoding; a "%" that begins
// no escape is one. nullopt if a segment is empty (the last may be), is "." or "..", contains a slash or a zero byte, or
// begins with a dot (except .well-known) while `dots` is false. "" and "dir/" are returned unchanged.
std::optional<std::string> file_path(std::string_view encoded, bool dots);

// What `path` (as received) has behind `prefix`, which ends with "/". Both are compared decoded, segment by segment, as a
// router compares patterns. nullopt if the path has another beginning.
std::optional<std::string_view> behind_prefix(std::string_view path, std::string_view prefix);

}  // namespace tuza::http
