// Public header, part of <tuza/tuza.h>.
//
// errorf(): an Error whose message is a text, with the error that caused it inside.
//
//     if (!page) return std::unexpected(tuza::errorf("get {}: {}", url, page.error()));
//
//     error.message();                         // "get http://db/: dial db:80: Connection timed out"
//     error.is(std::errc::timed_out);          // true: the code is that of the cause
//
// The text is checked while the program is compiled: a "{}" for each argument, in their order, without format
// specifications; "{{" and "}}" are braces. Arguments are strings, numbers, bool, char, Errors and error codes;
// where the standard library has <format>, whatever it formats as "{}".
//
// The first argument that is an Error, or a std::error_code, is the cause: it gives the Error its code, and so
// is(), timeout() and the like see through any number of errorf() around it. Without a cause the code is
// Errc::kOther.
#pragma once

#include <tuza/sched/result.h>

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <version>
#if defined(__cpp_lib_format)
#include <format>
#endif

namespace tuza {

namespace detail {

// Not constexpr: a call from a constant expression is an error that shows the name.
void errorf_needs_one_pair_of_braces_for_each_argument();
void errorf_has_a_brace_without_a_partner_write_two_for_one();
void errorf_knows_no_formats_pass_it_the_formatted_text();

// The text of errorf(), checked.
template <class... Args>
class ErrorText {
 public:
  template <class Text>
    requires std::convertible_to<const Text&, std::string_view>
  consteval ErrorText(const Text& text) : text_(text) {  // NOLINT: converts
    std::size_t pairs = 0;
    for (std::size_t i = 0; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c != '{' && c != '}') continue;
      const char next = i + 1 < text_.size() ? text_[i + 1] : '\0';
      if (c == '{' && next == '}') {
        ++pairs;
      } else if (c == '{' && (next == ':' || (next >= '0' && next <= '9'))) {
        errorf_knows_no_formats_pass_it_the_formatted_text();
      } else if (next != c) {
        errorf_has_a_brace_without_a_partner_write_two_for_one();
      }
      ++i;
    }
    if (pairs != sizeof...(Args)) errorf_needs_one_pair_of_braces_for_each_argument();
  }
  [[nodiscard]] std::string_view get() const { return text_; }

 private:
  std::string_view text_;
};

std::string error_text(long long number);
std::string error_text(unsigned long long number);
std::string error_text(double number);

template <class T>
std::string error_text_of(const T& value) {
  if constexpr (std::same_as<T, Error> || std::same_as<T, std::error_code>) {
    return value.message();
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    return std::string(std::string_view(value));
  } else if constexpr (std::same_as<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::same_as<T, char>) {
    return std::string(1, value);
  } else if constexpr (std::signed_integral<T>) {
    return error_text(static_cast<long long>(value));
  } else if constexpr (std::unsigned_integral<T>) {
    return error_text(static_cast<unsigned long long>(value));
  } else if constexpr (std::same_as<T, double> || std::same_as<T, float>) {
    return error_text(static_cast<double>(value));
#if defined(__cpp_lib_format)
  } else if constexpr (std::default_initializable<std::formatter<T, char>>) {
    return std::format("{}", value);
#endif
  } else {
    static_assert(sizeof(T) == 0, "errorf() takes strings, numbers, Errors and error codes");
  }
}

template <class T>
std::error_code error_code_of(const T& value) {
  if constexpr (std::same_as<T, Error>) {
    return value.code();
  } else if constexpr (std::same_as<T, std::error_code>) {
    return value;
  } else {
    return {};
  }
}

Error make_text_error(std::string_view text, std::span<const std::string> arguments,
                      std::span<const std::error_code> codes);

}  // namespace detail

template <class... Args>
[[nodiscard]] Error errorf(detail::ErrorText<std::type_identity_t<Args>...> text, const Args&... args) {
  const std::array<std::string, sizeof...(Args)> arguments{detail::error_text_of(args)...};
  const std::array<std::error_code, sizeof...(Args)> codes{detail::error_code_of(args)...};
  return detail::make_text_error(text.get(), arguments, codes);
}

}  // namespace tuza
