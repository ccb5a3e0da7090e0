// Decompresses the messages of permessage-deflate (RFC 7692 7.2.2) by zlib, within a limit.
//
// Its memory, about 7 KiB and the window, is allocated with the first compressed message. Thread-unsafe.
#pragma once

#include <tuza/http/websocket/gather.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace tuza::http::websocket {

class Inflater {
 public:
  enum class Outcome : std::uint8_t { kDone, kTooLarge, kMalformed, kNoRoom };  // kNoRoom: Gather's budget

  // `window_bits`: 9 to 15. `takeover`: a message may refer to those before.
  Inflater(int window_bits, bool takeover);
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater();

  // Adds what the next piece of a message means to `out`, which gets at most `bytes_max`. Throws std::bad_alloc.
  [[nodiscard]] Outcome feed(std::string_view piece, Gather& out, std::size_t bytes_max);
  // The message is complete.
  [[nodiscard]] Outcome end(Gather& out, std::size_t bytes_max);

 private:
  struct Stream;

  const int window_bits_;
  const bool takeover_;
  std::unique_ptr<Stream> stream_;  // null: no message yet
};

}  // namespace tuza::http::websocket
