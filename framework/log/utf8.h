// Valid UTF-8 (RFC 3629), which JSON and Prometheus demand of text from outside. Thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tuza {

// The length in bytes of the UTF-8 character at the beginning of `text`, which is not empty; 0 if there is no valid one.
std::size_t utf8_length(std::string_view text);
// `text`, with each byte that belongs to no valid character replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

}  // namespace tuza
