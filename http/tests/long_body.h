// A body of some megabytes for tests of what passes long ones on.
#pragma once

#include <cstddef>
#include <string>

namespace tuza::http::testing {

inline constexpr std::size_t kLong = std::size_t{3} << 20;

// No two pieces of it are alike, so that a lost, doubled or exchanged one shows.
inline const std::string& long_body() {
  static const std::string body = [] {
    std::string text;
    for (std::size_t i = 0; text.size() < kLong; ++i) text.append(std::to_string(i * 7919)).append(",");
    return text;
  }();
  return body;
}

}  // namespace tuza::http::testing
