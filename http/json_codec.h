// Public header, part of <tuza/http.h>.
//
// JSON by the library of your choice. Tuza has none: it calls JsonCodec<T>, which is specialised for a type
//
//     template <>
//     struct tuza::http::JsonCodec<Point> {
//       static void encode(const Point& point, std::string& out);   // appends
//       static Point decode(std::string_view json);                 // throws JsonError
//     };
//
// or for all that a library can convert: http/nlohmann_json.h does that for nlohmann/json. Then
//
//     const Point point = req.json<Point>();                        // 400, 413 and 415 by themselves
//     res.json(201, point);
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <concepts>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace tuza::http {

template <class T>
struct JsonCodec;

// What a codec throws for text that is no JSON, or no T. The client gets 400 with this text.
class JsonError : public std::runtime_error {
 public:
  // Malformed at this byte, which counts from 1.
  explicit JsonError(std::size_t byte);
  // JSON, but not what is expected: "the member \"x\" is missing".
  explicit JsonError(const std::string& text) : std::runtime_error(text) {}
};

struct JsonLimits {
  std::size_t bytes_max = 1 << 20;
  // Arrays and objects within each other: libraries that recurse would use up the goroutine's stack.
  std::size_t depth_max = 100;
};

namespace detail {
template <class T>
inline constexpr bool is_json_text =
    std::same_as<std::decay_t<T>, std::string> || std::same_as<std::decay_t<T>, std::string_view> ||
    std::same_as<std::decay_t<T>, const char*> || std::same_as<std::decay_t<T>, char*>;
// {"a", 1} would be a std::string_view of one letter: overloads that take this are deleted. {text, size} is a text.
struct BracedList {
  template <class A, class B, class... More>
    requires(sizeof...(More) > 0 || !std::same_as<std::remove_cvref_t<B>, std::size_t>)
  BracedList(A&&, B&&, More&&...);
};
}  // namespace detail

// A type that is sent as JSON. Texts are not among them: they are JSON already.
template <class T>
concept JsonEncodable = !detail::is_json_text<T> &&
                        requires(const T& value, std::string& out) { JsonCodec<T>::encode(value, out); };
// Views and pointers are none: the text that they would refer to is gone.
template <class T>
concept JsonDecodable =
    !std::is_pointer_v<T> && !std::same_as<T, std::string_view> && requires(std::string_view json) {
      { JsonCodec<T>::decode(json) } -> std::convertible_to<T>;
    };

namespace detail {
template <bool kHasCodec>
constexpr void require_json_codec() {
  static_assert(kHasCodec,
                "this type has no http::JsonCodec: include <tuza/http/nlohmann_json.h>, or specialise "
                "JsonCodec for it");
}
}  // namespace detail

// The byte, counted from 1, of the bracket that opens one array or object too many; nullopt if there is none. Reads the
// text once, without recursion, and does not check it otherwise.
[[nodiscard]] std::optional<std::size_t> json_too_deep(std::string_view json, std::size_t depth_max);

}  // namespace tuza::http
