// Validates UTF-8 that arrives in pieces (RFC 3629): no overlong forms, no surrogates, nothing above U+10FFFF. Says so at
// the first wrong byte. Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace tuza::http::websocket {

class Utf8 {
 public:
  // False: the text so far is the beginning of no UTF-8 text.
  bool feed(std::string_view piece);
  // Whether the text may end here.
  [[nodiscard]] bool complete() const { return missing_ == 0; }

 private:
  bool lead(std::uint8_t byte);

  int missing_ = 0;                        // continuation bytes of the character in progress
  std::uint8_t low_ = 0x80, high_ = 0xbf;  // the range of the next one
};

}  // namespace tuza::http::websocket
