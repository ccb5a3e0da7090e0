#include <tuza/http/websocket/utf8.h>

#include <cstring>

namespace tuza::http::websocket {

bool Utf8::lead(std::uint8_t byte) {
  if (byte < 0x80) return true;
  if (byte < 0xc2 || byte > 0xf4) return false;
  missing_ = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3;
  if (byte == 0xe0) low_ = 0xa0;   // overlong below
  if (byte == 0xed) high_ = 0x9f;  // surrogates above
  if (byte == 0xf0) low_ = 0x90;   // overlong below
  if (byte == 0xf4) high_ = 0x8f;  // above U+10FFFF
  return true;
}

bool Utf8::feed(std::string_view piece) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080;
  for (std::size_t i = 0; i < piece.size();) {
    std::uint64_t word = 0;
    if (missing_ == 0 && piece.size() - i >= sizeof word) {
      std::memcpy(&word, piece.data() + i, sizeof word);
      if ((word & kHighBits) == 0) {
        i += sizeof word;
        continue;
      }
    }
    const auto byte = static_cast<std::uint8_t>(piece[i++]);
    if (missing_ == 0) {
      if (!lead(byte)) return false;
      continue;
    }
    if (byte < low_ || byte > high_) return false;
    --missing_;
    low_ = 0x80;
    high_ = 0xbf;
  }
  return true;
}

}  // namespace tuza::http::websocket
