// Compresses the messages of permessage-deflate (RFC 7692 7.2.1) by zlib.
//
// Its memory is allocated with the first message: 2^(window_bits + 2) bytes for the window and 32 KiB for the rest, 160 KiB
// at most. Thread-unsafe.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

namespace tuza::http::websocket {

class Deflater {
 public:
  // `window_bits`: 9 to 15. `takeover`: messages may refer to those before. `level`: 1 to 9.
  Deflater(int window_bits, bool takeover, int level);
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
  ~Deflater();

  // Every message ends with these bytes, which are not sent: 00 00 ff ff.
  static constexpr std::size_t kTailBytes = 4;

  struct Progress {
    std::size_t produced = 0;
    bool done = false;  // the message is complete; otherwise `out` is full
  };
  // Compresses a message that is not empty; removes from `in` what has been consumed. To be called until it is done.
  // `out` has at least 8 bytes. Throws std::bad_alloc.
  [[nodiscard]] Progress feed(std::string_view& in, std::span<char> out);

 private:
  struct Stream;

  const int window_bits_;
  const bool takeover_;
  const int level_;
  std::unique_ptr<Stream> stream_;  // null: no message yet
};

}  // namespace tuza::http::websocket
