// Text from outside in HTML, JSON and quoted strings. Thread-safe.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace tuza::http::detail {

// For elements and quoted attributes.
inline std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

// The length of the valid UTF-8 character at the beginning of `text`, and its code point; {0, 0} if there is none.
struct Utf8Char {
  std::size_t bytes = 0;
  char32_t code = 0;
};
constexpr Utf8Char utf8_char(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {1, first};
  const std::size_t bytes = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (bytes == 0 || text.size() < bytes) return {};
  char32_t code = first & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = (code << 6) | (byte(i) & 0x3fU);
  }
  constexpr std::array<char32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  const bool valid = code >= kLeast[bytes] && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
  return valid ? Utf8Char{bytes, code} : Utf8Char{};
}

// Characters that change how the text around them is shown, or end its line: C1 controls, line and paragraph separators,
// directions (bidi), invisible ones, among them the tags, which spell ASCII unseen.
constexpr bool is_deceptive(char32_t code) {
  return (code >= 0x80 && code <= 0x9f) || code == 0xad || code == 0x61c || code == 0x180e ||
         (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2060 && code <= 0x206f) || code == 0xfeff || (code >= 0xfff9 && code <= 0xfffb) ||
         (code >= 0xe0000 && code <= 0xe0fff);
}

// The contents of a JSON string, without the quotes. Bytes that are not UTF-8 become U+FFFD.
std::string json_escaped(std::string_view text);

// For a quoted field of a log line: quotes, backslashes, control characters, deceptive characters, and bytes that are
// not UTF-8 become \", \\ and \xNN. The result is printable, and contains no quote that is not escaped.
void append_log_escaped(std::string& out, std::string_view text);

// A quoted-string of HTTP (RFC 9110 5.6.4). Throws std::invalid_argument for control characters.
std::string quoted(std::string_view text);

}  // namespace tuza::http::detail
