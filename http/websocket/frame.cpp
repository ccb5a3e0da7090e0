#include <tuza/http/websocket/frame.h>

#include <cstring>

namespace tuza::http::websocket {
namespace {

std::uint64_t big_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

std::string_view wrong_first_byte(unsigned first, bool deflate) {
  const unsigned opcode = first & 15;
  if ((opcode > 2 && opcode < 8) || opcode > 10) return "unknown opcode";
  const bool may_be_compressed = deflate && (opcode == 1 || opcode == 2);
  if ((first & (may_be_compressed ? 0x30 : 0x70)) != 0) return "reserved bits are set";
  if (opcode >= 8 && (first & 0x80) == 0) return "fragmented control frame";
  return {};
}

}  // namespace

ParsedHead parse_frame_head(std::string_view bytes, Role sender, bool deflate) {
  if (bytes.empty()) return {};
  const auto first = static_cast<unsigned char>(bytes[0]);
  if (const std::string_view wrong = wrong_first_byte(first, deflate); !wrong.empty()) return {{}, wrong};
  if (bytes.size() < 2) return {};
  const auto second = static_cast<unsigned char>(bytes[1]);
  FrameHead head{.fin = (first & 0x80) != 0,
                 .compressed = (first & 0x40) != 0,
                 .opcode = static_cast<Opcode>(first & 15)};
  const bool masked = (second & 0x80) != 0;
  if (masked != (sender == Role::kClient)) return {{}, masked ? "masked frame" : "unmasked frame"};
  const unsigned form = second & 0x7f;
  if (is_control(head.opcode) && form > kControlBytesMax) return {{}, "control frame too long"};
  const std::size_t more = form == 127 ? 8 : form == 126 ? 2 : 0;
  if (bytes.size() < 2 + more) return {};
  head.length = more == 0 ? form : big_endian(bytes.substr(2, more));
  // 5.2: the shortest form of the length, and at most 63 bits.
  if ((more == 2 && head.length < 126) || (more == 8 && head.length < 65536) || head.length >> 63 != 0) {
    return {{}, "malformed length"};
  }
  head.bytes = 2 + more + (masked ? sizeof(Mask) : 0);
  if (bytes.size() < head.bytes) return {};
  if (masked) std::memcpy(head.mask.emplace().data(), bytes.data() + 2 + more, sizeof(Mask));
  return {head, {}};
}

std::size_t write_frame_head(std::span<char, kHeadBytesMax> into, OutHead head, std::uint64_t length) {
  into[0] = static_cast<char>((head.fin ? 0x80 : 0) | (head.compressed ? 0x40 : 0) |
                              static_cast<unsigned>(head.opcode));
  const std::size_t more = length > 0xffff ? 8 : length > 125 ? 2 : 0;
  into[1] = static_cast<char>((head.mask ? 0x80 : 0) | (more == 8 ? 127 : more == 2 ? 126 : length));
  for (std::size_t i = 0; i < more; ++i) into[2 + i] = static_cast<char>(length >> 8 * (more - 1 - i));
  if (!head.mask) return 2 + more;
  std::memcpy(into.data() + 2 + more, head.mask->data(), sizeof(Mask));
  return 2 + more + sizeof(Mask);
}

void apply_mask(std::span<char> data, const Mask& mask, std::uint64_t offset) {
  std::array<std::uint8_t, 8> turned{};
  for (std::size_t i = 0; i < turned.size(); ++i) turned[i] = mask[(offset + i) % 4];
  std::uint64_t word = 0, part = 0;
  std::memcpy(&word, turned.data(), sizeof word);
  std::size_t at = 0;
  for (; at + sizeof word <= data.size(); at += sizeof word) {
    std::memcpy(&part, data.data() + at, sizeof part);
    part ^= word;
    std::memcpy(data.data() + at, &part, sizeof part);
  }
  for (std::size_t i = 0; at < data.size(); ++at, ++i) {
    data[at] = static_cast<char>(static_cast<unsigned char>(data[at]) ^ turned[i]);
  }
}

}  // namespace tuza::http::websocket
