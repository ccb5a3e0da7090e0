// Which media type a file has, by the end of its name. Thread-safe.
#pragma once

#include <string_view>

namespace tuza::http {

// "text/html; charset=utf-8" for index.html; application/octet-stream for what the table does not know.
std::string_view content_type_of(std::string_view path);

}  // namespace tuza::http
