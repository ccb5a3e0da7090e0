// What separates the parts of a multipart body (RFC 2046 5.1.1). Thread-safe.
#pragma once

#include <array>
#include <cstdio>
#include <random>
#include <string>

namespace tuza::http {

// Unpredictable: no file or text can have been prepared to contain it.
[[nodiscard]] inline std::string random_boundary() {
  std::random_device random;
  std::array<char, 33> text;
  std::snprintf(text.data(), text.size(), "%08x%08x%08x%08x", random(), random(), random(), random());
  return text.data();
}

}  // namespace tuza::http
