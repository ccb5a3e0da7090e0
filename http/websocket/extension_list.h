// Takes the value of a Sec-WebSocket-Extensions field apart (RFC 6455 9.1). Thread-unsafe; the results are views of the text.
#pragma once

#include <tuza/http/wire/chars.h>

#include <cstddef>
#include <string_view>

namespace tuza::http::websocket {

// A cursor over 1#( token *( ";" token [ "=" ( token / quoted-string ) ] ) ).
class ExtensionList {
 public:
  explicit ExtensionList(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool at_end() {
    skip_blanks();
    return rest_.empty();
  }
  bool take(char c) {
    skip_blanks();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // Empty: there is none.
  std::string_view token() {
    skip_blanks();
    std::size_t n = 0;
    while (n < rest_.size() && is(rest_[n], kTokenChar)) ++n;
    const std::string_view found = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return found;
  }
  // 9.1: the content of a quoted string must be a token as well. Empty: it is none.
  std::string_view value() {
    if (!take('"')) return token();
    std::size_t n = 0;
    while (n < rest_.size() && is(rest_[n], kTokenChar)) ++n;
    const std::string_view found = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return rest_.starts_with('"') ? (rest_.remove_prefix(1), found) : std::string_view();
  }

 private:
  void skip_blanks() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t')) rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

// The value of a window's size in permessage-deflate: 8 to 15, without leading zeros; 0: something else.
inline int window_bits(std::string_view text) {
  if (text.size() == 1 && (text[0] == '8' || text[0] == '9')) return text[0] - '0';
  if (text.size() == 2 && text[0] == '1' && text[1] >= '0' && text[1] <= '5') return 10 + text[1] - '0';
  return 0;
}

}  // namespace tuza::http::websocket
