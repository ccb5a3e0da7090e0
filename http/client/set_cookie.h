// Set-Cookie as a client reads it: RFC 6265bis 5.6, forgiving where servers are careless.
//
// Thread-safe; the results are views of the argument.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace tuza::http {

struct SetCookie {
  std::string_view name, value;
  std::string_view domain{};  // without a leading dot; empty: none
  std::string_view path{};    // empty: none, or one that does not begin with "/"
  bool has_path = false;      // a usable one
  bool secure = false;
  // How long it lives, of Max-Age or else Expires; not positive: it ends at once. nullopt: as long as the jar.
  std::optional<std::chrono::seconds> lifetime{};
};

// nullopt: to be ignored. `now`: what Expires is compared with.
[[nodiscard]] std::optional<SetCookie> parse_set_cookie(std::string_view text, std::chrono::sys_seconds now);

// RFC 6265bis 5.1.1: any order, any separators, two or four digits of the year.
[[nodiscard]] std::optional<std::chrono::sys_seconds> parse_cookie_date(std::string_view text);

}  // namespace tuza::http
