// Conversion of durations and sizes from and to text: "250ms", "64KiB".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tuza::config {

// Return milliseconds and bytes. Empty if the unit is missing or unknown, if there is a sign or a fraction, or if the
// value is too large.
std::optional<std::int64_t> parse_duration_ms(std::string_view text);
std::optional<std::int64_t> parse_size(std::string_view text);

// Use the largest unit that leaves no fraction.
std::string duration_text(std::int64_t ms);
std::string size_text(std::int64_t bytes);

}  // namespace tuza::config
