// The head of a WebSocket frame (RFC 6455 5.2).
//
//       byte 0             byte 1            0, 2 or 8 bytes       4 bytes if masked
//     | FIN RSV1-3 opcode | MASK length    | longer length       | mask            | payload
//         1    3     4        1     7
//
// Pure: bytes in, values out. Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tuza::http::websocket {

enum class Opcode : std::uint8_t {
  kContinuation = 0,
  kText = 1,
  kBinary = 2,
  kClose = 8,
  kPing = 9,
  kPong = 10
};

[[nodiscard]] constexpr bool is_control(Opcode opcode) { return static_cast<std::uint8_t>(opcode) >= 8; }

// Whose frames: a client masks them, a server does not (5.1).
enum class Role : std::uint8_t { kServer, kClient };
[[nodiscard]] constexpr Role peer_of(Role role) {
  return role == Role::kServer ? Role::kClient : Role::kServer;
}

constexpr std::size_t kControlBytesMax = 125;
constexpr std::size_t kHeadBytesMax = 14;

using Mask = std::array<std::uint8_t, 4>;

// A frame that has been received.
struct FrameHead {
  bool fin = false;
  bool compressed = false;  // RSV1
  Opcode opcode{};
  std::optional<Mask> mask{};
  std::uint64_t length = 0;  // of the payload
  std::size_t bytes = 0;     // of the head itself
};

struct ParsedHead {
  std::optional<FrameHead> head = {};  // nullopt: incomplete, or malformed
  std::string_view malformed = {};     // why; otherwise empty
};

// Parses the head of a frame of `sender` at the beginning of `bytes`. A head is malformed as soon as its bytes show it.
// `deflate`: RSV1 may be set, in the first frame of a message (RFC 7692 6).
[[nodiscard]] ParsedHead parse_frame_head(std::string_view bytes, Role sender, bool deflate);

// A frame to be sent.
struct OutHead {
  Opcode opcode{};
  bool fin = true;
  bool compressed = false;
  std::optional<Mask> mask{};
};
// Writes its head, with the shortest form of the length. Returns the number of bytes.
std::size_t write_frame_head(std::span<char, kHeadBytesMax> into, OutHead head, std::uint64_t length);

// Masks or unmasks `data`, which begins `offset` bytes into the payload.
void apply_mask(std::span<char> data, const Mask& mask, std::uint64_t offset = 0);

// Whether a peer may send this code in a close frame (7.4, and the IANA registry).
[[nodiscard]] constexpr bool is_close_code(int code) {
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

}  // namespace tuza::http::websocket
