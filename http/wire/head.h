// The head of a message: start line and header fields, as offsets into the received bytes.
//
// Offsets are used because the bytes move while the head is still arriving (a full buffer is replaced by a
// larger one). Views are made when the head is complete and its bytes stay in place.
#pragma once

#include <tuza/http/method.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tuza::http {

inline constexpr std::size_t kHeadersLimit = 256;

struct HeadSlice {
  std::uint32_t begin = 0;
  std::uint32_t size = 0;
  [[nodiscard]] std::string_view in(const char* base) const { return {base + begin, size}; }
};

// What requests and responses share.
struct Head {
  struct Field {
    HeadSlice name, value;
  };

  std::uint8_t version_minor = 0;  // HTTP/1.<this>
  std::uint32_t bytes = 0;         // of the whole head, the empty line included

  // Results of framing (http/wire/framing.h).
  bool chunked = false;
  bool has_content_length = false;
  bool keep_alive = false;
  std::uint64_t content_length = 0;

  std::vector<Field> fields;  // its memory is kept for the next head
};

struct RequestLine {
  Method method{};
  HeadSlice target;

  // Results of framing.
  bool expects_continue = false;
  bool https_target = false;  // a target in absolute form
  HeadSlice path;             // of the target, without query
  HeadSlice query;            // without "?"
  HeadSlice host;             // from a target in absolute form, otherwise from the Host field
};

struct StatusLine {
  HeadSlice reason;  // may be empty

  // Results of framing.
  int status = 0;            // 100 to 999
  bool until_close = false;  // the body ends with the connection: neither chunked nor with a length
};

// The start line lies in front of the fields, which are long: both begin in neighbouring cache lines.
struct RequestHead : RequestLine, Head {};
struct ResponseHead : StatusLine, Head {};

}  // namespace tuza::http
