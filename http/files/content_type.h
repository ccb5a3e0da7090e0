// Maps a file name's extension to its media type. Thread-safe.
#pragma once

#include <string_view>

namespace tuza::http {

// "text/html; charset=utf-8" for index.html; application/octet-stream for unknown extensions.
std::string_view content_type_of(std::string_view path);

}  // namespace tuza::http
