#include <tuza/http/wire/base64.h>

#include <cstddef>
#include <cstdint>

namespace tuza::http {
namespace {

constexpr std::string_view kUsual = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kOfUrls = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::optional<std::string> decode(std::string_view text, std::string_view alphabet) {
  if (text.size() % 4 == 1) return std::nullopt;
  std::string out;
  out.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::size_t value = alphabet.find(c);
    if (value == std::string_view::npos) return std::nullopt;
    bits = (bits << 6 | static_cast<std::uint32_t>(value)) & 0xffffff;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(bits >> count & 0xff);
  }
  if ((bits & ((1u << count) - 1)) != 0) return std::nullopt;
  return out;
}

std::string encode(std::string_view bytes, std::string_view alphabet) {
  std::string out;
  out.reserve(bytes.size() / 3 * 4 + 3);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : bytes) {
    bits = (bits << 8 | static_cast<unsigned char>(c)) & 0xffffff;
    count += 8;
    while (count >= 6) {
      count -= 6;
      out += alphabet[bits >> count & 63];
    }
  }
  if (count > 0) out += alphabet[bits << (6 - count) & 63];
  return out;
}

}  // namespace

std::string encode_base64url(std::string_view bytes) { return encode(bytes, kOfUrls); }

std::string encode_base64(std::string_view bytes) {
  std::string out = encode(bytes, kUsual);
  out.append((4 - out.size() % 4) % 4, '=');
  return out;
}

std::optional<std::string> decode_base64url(std::string_view text) { return decode(text, kOfUrls); }

std::optional<std::string> decode_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  if (text.ends_with("==")) {
    text.remove_suffix(2);
  } else if (text.ends_with('=')) {
    text.remove_suffix(1);
  }
  return decode(text, kUsual);
}

}  // namespace tuza::http
