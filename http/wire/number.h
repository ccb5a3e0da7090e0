// Writes numbers into a message. Thread-safe.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string>

namespace tuza::http {

inline void append_number(std::string& out, std::uint64_t value, int base = 10) {
  std::array<char, 20> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value, base);
  (void)error;
  out.append(digits.data(), end);
}

// The line in front of a chunk.
inline void append_chunk_size(std::string& out, std::uint64_t size) {
  append_number(out, size, 16);
  out += "\r\n";
}

}  // namespace tuza::http
