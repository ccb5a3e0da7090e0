// For fuzz targets: typed values at the beginning of an input, and checks.
//
// A target reads its parameters (limits, split points) from the first bytes of the input, and uses the rest as
// the text under test. All functions are total: an input that is too short gives zeros.
//
// Thread-unsafe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace tuza::fuzz {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  // Little endian.
  std::uint64_t number(int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value |= std::uint64_t{byte()} << (8 * i);
    return value;
  }
  [[nodiscard]] std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

// `text` as a literal that can be pasted into a test.
inline std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\') {
      out += c;
    } else {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02x", static_cast<unsigned>(byte));
      out += escape;
    }
  }
  return '"' + out + '"';
}

// Ends the process unless `holds`. `promise` says what should have held; `got` what was seen instead.
inline void expect(bool holds, std::string_view promise, std::string_view got = {}) {
  if (holds) [[likely]]
    return;
  std::fprintf(stderr, "\nfuzz: broken promise: %.*s\nfuzz: got: %s\n", static_cast<int>(promise.size()),
               promise.data(), printable(got).c_str());
  std::abort();
}

}  // namespace tuza::fuzz
