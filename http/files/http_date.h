// Times in HTTP's format, RFC 9110 5.6.7. Thread-safe.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace tuza::http {

// "Fri, 20 Nov 2026 20:15:00 GMT"
std::string format_http_date(std::chrono::sys_seconds time);

// Parses that form, and the two obsolete ones, "Friday, 20-Nov-26 20:15:00 GMT" and "Fri Nov 20 20:15:00
// 2026". nullopt for any other text: a condition with such a date must be ignored. `now` determines the
// century of a two-digit year.
std::optional<std::chrono::sys_seconds> parse_http_date(std::string_view text, std::chrono::sys_seconds now);

}  // namespace tuza::http
