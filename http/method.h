// Public header, part of <tuza/http.h>.
//
// Request methods.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tuza::http {

// The methods of RFC 9110 and PATCH (RFC 5789). Any other gets 501 before a handler sees it.
enum class Method : std::uint8_t { kGet, kHead, kPost, kPut, kDelete, kConnect, kOptions, kTrace, kPatch };
inline constexpr int kMethodCount = 9;

constexpr std::string_view name(Method method) {
  constexpr std::string_view kNames[kMethodCount] = {"GET",     "HEAD",    "POST",  "PUT",  "DELETE",
                                                     "CONNECT", "OPTIONS", "TRACE", "PATCH"};
  return kNames[static_cast<int>(method)];
}

// By its exact name: methods are case-sensitive.
constexpr std::optional<Method> parse_method(std::string_view text) {
  for (int i = 0; i < kMethodCount; ++i) {
    if (name(static_cast<Method>(i)) == text) return static_cast<Method>(i);
  }
  return std::nullopt;
}

}  // namespace tuza::http
