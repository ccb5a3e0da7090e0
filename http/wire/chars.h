// Character classes of HTTP and URIs as lookup tables, and case-insensitive comparison.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tuza::http {

enum CharClass : std::uint8_t {
  kTokenChar = 1,  // tchar, RFC 9110 5.6.2
  kPathChar = 2,   // of a request target up to its "?"
  kQueryChar = 4,  // of a request target behind it
  kHostChar = 8,   // unreserved and sub-delims of a reg-name, RFC 3986 3.2.2, but the comma
  kHexDigit = 16,
};

namespace detail {
// Targets are wider than RFC 3986. The URL rules of WHATWG, which browsers and Node's fetch follow, leave [ ] ^ | and a "%"
// that begins no escape as they are, and in a query also { } ` and \. Older clients, and curl, send bytes above 0x7f as they
// are. nginx, Apache and Go accept such bytes anywhere in a target; so do we. In a path, { } ` and \ stay refused: no browser
// sends them there, and browsers take a "\" in a path for a "/", also in a Location that repeats it.
constexpr std::array<std::uint8_t, 256> make_char_table() {
  std::array<std::uint8_t, 256> table{};
  const auto mark = [&table](std::string_view chars, std::uint8_t bits) {
    for (const char c : chars) table[static_cast<unsigned char>(c)] |= bits;
  };
  constexpr std::string_view kAlnum = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  mark(kAlnum, kTokenChar | kPathChar | kQueryChar | kHostChar);
  mark("!#$%&'*+-.^_`|~", kTokenChar);
  // With a comma, two Host fields that an intermediary has joined would pass as one.
  mark("-._~!$&'()*+;=", kHostChar);
  mark("-._~!$&'()*+,;=:@/[]|^%", kPathChar | kQueryChar);
  mark("?{}`\\", kQueryChar);
  for (std::size_t byte = 0x80; byte < table.size(); ++byte) table[byte] |= kPathChar | kQueryChar;
  mark("0123456789abcdefABCDEF", kHexDigit);
  return table;
}
inline constexpr std::array<std::uint8_t, 256> kCharTable = make_char_table();
}  // namespace detail

constexpr bool is(char c, CharClass wanted) {
  return (detail::kCharTable[static_cast<unsigned char>(c)] & wanted) != 0;
}

// Of ASCII letters, whatever the locale.
constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }
inline std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = lower(c);
  return result;
}

// Ignores the case of ASCII letters; all other bytes must match exactly.
constexpr bool equals_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && lower(a[i]) != lower(b[i])) return false;  // most are written as we write them
  }
  return true;
}

namespace detail {
inline constexpr std::uint64_t kOnes = ~std::uint64_t{0} / 255, kHighs = kOnes * 0x80;
// Of eight bytes: marks the high bit of those below 0x20, by the borrow of a subtraction. It may go on into the next byte: of
// several marks the lowest is right.
constexpr std::uint64_t marks_of_controls(std::uint64_t eight) {
  return (eight - kOnes * 0x20) & ~eight & kHighs;
}
}  // namespace detail

// The position of the first byte below 0x20, from `from` on; the size of `text` if there is none.
inline std::size_t find_control_char(std::string_view text, std::size_t from) {
  static_assert(std::endian::native == std::endian::little);
  for (; from + 8 <= text.size(); from += 8) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, text.data() + from, 8);
    const std::uint64_t marks = detail::marks_of_controls(eight);
    if (marks != 0) return from + static_cast<std::size_t>(std::countr_zero(marks)) / 8;
  }
  while (from < text.size() && static_cast<unsigned char>(text[from]) >= 0x20) ++from;
  return from;
}

// True if `text` contains a control character other than the tab, which a field's value must not contain.
// Checks eight bytes at a time, since every response needs this check.
inline bool has_control_char(std::string_view text) {
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, text.data() + i, 8);
    const std::uint64_t del = eight ^ (detail::kOnes * 0x7f);  // zero where there is a 0x7f
    if ((detail::marks_of_controls(eight) | ((del - detail::kOnes) & ~del & detail::kHighs)) != 0) break;
  }
  for (; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\t') || c == 0x7f) return true;
  }
  return false;
}

// `text` without surrounding spaces and tabs (OWS).
constexpr std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

constexpr int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return lower(c) - 'a' + 10;
}

// True if the text at `at` is "%" followed by two hexadecimal digits.
constexpr bool is_percent_escape(std::string_view text, std::size_t at) {
  return at + 2 < text.size() && text[at] == '%' && is(text[at + 1], kHexDigit) &&
         is(text[at + 2], kHexDigit);
}

// The character encoded by the escape at `at`.
constexpr char unescaped(std::string_view text, std::size_t at) {
  return static_cast<char>(hex_value(text[at + 1]) * 16 + hex_value(text[at + 2]));
}

// Appends `text` with its escapes decoded. A "%" that begins none stays as it is.
inline void append_unescaped(std::string& out, std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = is_percent_escape(text, i);
    out += escape ? unescaped(text, i) : text[i];
    if (escape) i += 2;
  }
}

}  // namespace tuza::http
