// The keys that a client masks its frames with. Whoever makes it send must not be able to foresee them (RFC 6455 10.3):
// they come from OpenSSL's generator, several at a time.
//
// Thread-unsafe.
#pragma once

#include <tuza/http/websocket/frame.h>

#include <array>
#include <cstddef>
#include <optional>

namespace tuza::http::websocket {

class MaskKeys {
 public:
  // nullopt: the generator has failed.
  [[nodiscard]] std::optional<Mask> next() {
    if (left_ == 0 && !fill()) return std::nullopt;
    return keys_[--left_];
  }

 private:
  bool fill();

  std::array<Mask, 16> keys_{};
  std::size_t left_ = 0;
};

}  // namespace tuza::http::websocket
