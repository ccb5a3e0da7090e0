// How much one call reads or writes, where calls go by the C library (calls_posix.h). macOS refuses more than 2 GiB (EINVAL),
// of all pieces together; FreeBSD does if it is configured so. Callers go on after a part, as they must anyhow.
//
// Thread-safe.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstddef>

namespace tuza::sys {

inline constexpr std::size_t kPortionBytesMax = std::size_t{1} << 30;

inline std::size_t portion(auto bytes) { return std::min(static_cast<std::size_t>(bytes), kPortionBytesMax); }

// `message` without the pieces that would be too much. `cut` becomes the first piece if that one is too much by itself, and
// must live as long as the result. A message with any bytes keeps some.
inline struct msghdr portion(const struct msghdr& message, struct iovec& cut) {
  struct msghdr part = message;
  std::size_t room = kPortionBytesMax;
  const auto count = static_cast<std::size_t>(message.msg_iovlen);
  for (std::size_t i = 0; i < count; ++i) {
    const struct iovec& piece = message.msg_iov[i];
    if (piece.iov_len <= room) {
      room -= piece.iov_len;
      continue;
    }
    if (room < kPortionBytesMax) {
      part.msg_iovlen = static_cast<decltype(part.msg_iovlen)>(i);
    } else {
      cut = {piece.iov_base, kPortionBytesMax};
      part.msg_iov = &cut;
      part.msg_iovlen = 1;
    }
    break;
  }
  return part;
}

}  // namespace tuza::sys
