// Public header, part of <tuza/http.h>.
//
// The request methods and their names.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <cstdint>
#include <optional>
#include <string_view>

namespace tuza::http {

// The methods of RFC 9110, and PATCH (RFC 5789). The server answers any other method with 501, without
// calling a handler.
enum class Method : std::uint8_t { kGet, kHead, kPost, kPut, kDelete, kConnect, kOptions, kTrace, kPatch };
inline constexpr int kMethodCount = 9;

namespace detail {
// Not in name(), which would build it at each call.
inline constexpr std::string_view kMethodNames[kMethodCount] = {
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"};
}  // namespace detail

constexpr std::string_view name(Method method) { return detail::kMethodNames[static_cast<int>(method)]; }

// RFC 9110 9.2.2: doing it twice is as good as once. CONNECT, which opens a tunnel, is none either.
constexpr bool is_idempotent(Method method) {
  return method != Method::kPost && method != Method::kPatch && method != Method::kConnect;
}

// Exact match: methods are case-sensitive.
constexpr std::optional<Method> parse_method(std::string_view text) {
  for (int i = 0; i < kMethodCount; ++i) {
    if (name(static_cast<Method>(i)) == text) return static_cast<Method>(i);
  }
  return std::nullopt;
}

}  // namespace tuza::http
