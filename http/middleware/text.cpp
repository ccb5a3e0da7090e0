#include <tuza/http/middleware/detail/text.h>

#include <tuza/http/wire/chars.h>

#include <stdexcept>

namespace tuza::http::detail {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

void append_u(std::string& out, char32_t code) {
  if (code > 0xffff) {  // a surrogate pair
    append_u(out, 0xd800 + ((code - 0x10000) >> 10));
    return append_u(out, 0xdc00 + (code & 0x3ff));
  }
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kDigits[(code >> shift) & 15];
}

}  // namespace

std::string json_escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Char c = utf8_char(text);
    if (c.bytes == 0) {
      out += "\xef\xbf\xbd";
      text.remove_prefix(1);
      continue;
    }
    if (c.code == '"' || c.code == '\\') {
      out.append("\\").append(1, text[0]);
    } else if (c.code < 0x20 || c.code == 0x7f || is_deceptive(c.code)) {
      append_u(out, c.code);
    } else {
      out += text.substr(0, c.bytes);
    }
    text.remove_prefix(c.bytes);
  }
  return out;
}

void append_log_escaped(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const Utf8Char c = utf8_char(text);
    const std::size_t bytes = c.bytes == 0 ? 1 : c.bytes;
    if (c.code == '"' || c.code == '\\') {
      out.append("\\").append(1, text[0]);
    } else if (c.bytes == 0 || c.code < 0x20 || c.code == 0x7f || is_deceptive(c.code)) {
      for (std::size_t i = 0; i < bytes; ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        out.append("\\x").append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
      }
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
}

std::string quoted(std::string_view text) {
  if (has_control_char(text)) throw std::invalid_argument("control character in a quoted string");
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

}  // namespace tuza::http::detail
