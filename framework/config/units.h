// Durations and sizes as text: "250ms", "64KiB".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tuza::config {

// Milliseconds, bytes. Nothing if there is no unit, an unknown one, a sign, a fraction, or too much of it.
std::optional<std::int64_t> parse_duration_ms(std::string_view text);
std::optional<std::int64_t> parse_size(std::string_view text);

// With the largest unit that leaves no fraction.
std::string duration_text(std::int64_t ms);
std::string size_text(std::int64_t bytes);

}  // namespace tuza::config
