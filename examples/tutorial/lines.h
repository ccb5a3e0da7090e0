// Reads lines from a connection.
#pragma once

#include <tuza/net.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>

class LineReader {
 public:
  explicit LineReader(tuza::net::Conn& conn) : conn_(conn) {}

  // The next line without its end. Nothing at the end of the stream, on an error, after a deadline, or if the line
  // is longer than 1,000 bytes. Parks.
  std::optional<std::string> next() {
    for (;;) {
      if (const std::size_t end = text_.find('\n'); end <= kLineBytesMax) {  // npos is larger
        std::string line = text_.substr(0, end);
        text_.erase(0, end + 1);
        return line;
      }
      if (text_.size() > kLineBytesMax) return std::nullopt;
      std::array<char, 1024> buffer;
      const auto n = conn_.read(std::span(buffer));
      if (!n || *n == 0) return std::nullopt;
      text_.append(buffer.data(), *n);
    }
  }

 private:
  static constexpr std::size_t kLineBytesMax = 1'000;
  tuza::net::Conn& conn_;
  std::string text_;
};
