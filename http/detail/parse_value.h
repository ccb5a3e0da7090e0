// Text of a request as a number or another simple type, for the typed getters.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace tuza::http::detail {

template <class T>
concept Parsable =
    std::same_as<T, bool> || std::same_as<T, std::string> || std::same_as<T, std::string_view> ||
    std::floating_point<T> || (std::integral<T> && !std::same_as<T, char>);

// The whole of `text` in decimal, without spaces and without "+"; a bool is "true", "false", "1" or "0". nullopt if it
// is malformed or does not fit.
template <class T>
[[nodiscard]] std::optional<T> parse_value(std::string_view text) {
  static_assert(Parsable<T>,
                "a value of a request is a number, a bool or text: make another type of the text yourself");
  if constexpr (std::same_as<T, bool>) {
    if (text == "true" || text == "1") return true;
    if (text == "false" || text == "0") return false;
    return std::nullopt;
  } else if constexpr (std::is_arithmetic_v<T>) {
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
  } else if constexpr (Parsable<T>) {
    return T(text);
  } else {
    return std::nullopt;
  }
}

// Throw a StatusError.
[[noreturn]] void no_such_path();
[[noreturn]] void malformed_value(std::string_view what, std::string_view name);
// Throws std::logic_error.
[[noreturn]] void no_such_path_value(std::string_view name);

}  // namespace tuza::http::detail
