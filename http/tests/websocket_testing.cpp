#include <tuza/http/tests/websocket_testing.h>

#include <gtest/gtest.h>

namespace tuza::http::testing {

std::string frame(int opcode, std::string_view payload, const FrameShape& shape) {
  std::string bytes;
  bytes += static_cast<char>((shape.fin ? 0x80 : 0) | shape.rsv << 4 | opcode);
  const std::uint64_t length = shape.claimed_length.value_or(payload.size());
  int more = shape.length_bytes;
  if (more == 0 && length > 125) more = length > 0xffff ? 8 : 2;
  bytes += static_cast<char>((shape.masked ? 0x80 : 0) | (more == 8   ? 127
                                                          : more == 2 ? 126
                                                                      : static_cast<int>(length)));
  for (int i = more; i-- > 0;) bytes += static_cast<char>(length >> 8 * i);
  if (!shape.masked) return bytes.append(payload);
  std::string mask;
  for (int i = 4; i-- > 0;) mask += static_cast<char>(shape.mask >> 8 * i);
  bytes += mask;
  for (std::size_t i = 0; i < payload.size(); ++i) bytes += static_cast<char>(payload[i] ^ mask[i % 4]);
  return bytes;
}

std::string close_frame(int code, std::string_view reason) {
  return frame(8, std::string{static_cast<char>(code >> 8), static_cast<char>(code)}.append(reason));
}

std::optional<ServerFrame> parse_server_frame(std::string_view bytes) {
  if (bytes.size() < 2) return std::nullopt;
  const auto at = [bytes](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  ServerFrame frame{
      .opcode = at(0) & 15, .fin = (at(0) & 0x80) != 0, .compressed = (at(0) & 0x40) != 0, .payload = {}};
  EXPECT_EQ(at(0) & 0x30, 0);
  EXPECT_EQ(at(1) & 0x80, 0) << "a server masks nothing";
  std::uint64_t length = at(1) & 0x7f;
  const std::size_t more = length == 127 ? 8 : length == 126 ? 2 : 0;
  if (bytes.size() < 2 + more) return std::nullopt;
  if (more > 0) length = 0;
  for (std::size_t i = 0; i < more; ++i) length = length << 8 | at(2 + i);
  if (bytes.size() - 2 - more < length) return std::nullopt;
  frame.payload = bytes.substr(2 + more, length);
  frame.bytes = 2 + more + length;
  return frame;
}

std::string handshake(std::string_view fields) {
  return "GET /ws HTTP/1.1\r\nHost: example.com\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
         "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
         std::string(fields) + "\r\n";
}

WebSocketClient::WebSocketClient(const std::string& address, std::string_view fields, std::string_view early)
    : client_(address) {
  client_.send(handshake(fields).append(early));
  client_.read_until([this] { return client_.received().find("\r\n\r\n") != std::string::npos; });
  at_ = client_.received().find("\r\n\r\n") + 4;
  head_ = client_.received().substr(0, at_);
  EXPECT_TRUE(head_.starts_with("HTTP/1.1 101 ")) << head_;
}

ServerFrame WebSocketClient::next() {
  std::optional<ServerFrame> frame;
  client_.read_until([&] {
    frame = parse_server_frame(std::string_view(client_.received()).substr(at_));
    return frame.has_value();
  });
  if (!frame) return {.payload = {}};
  at_ += frame->bytes;
  return *frame;
}

std::string WebSocketClient::next_text() {
  const ServerFrame frame = next();
  switch (frame.opcode) {
    case -1: return "end";
    case 1: return "text:" + frame.payload;
    case 2: return "binary:" + frame.payload;
    case 9: return "ping:" + frame.payload;
    case 10: return "pong:" + frame.payload;
    case 8:
      if (frame.payload.empty()) return "close";
      return "close:" +
             std::to_string(static_cast<unsigned char>(frame.payload[0]) << 8 |
                            static_cast<unsigned char>(frame.payload[1])) +
             ":" + frame.payload.substr(2);
    default: return "opcode " + std::to_string(frame.opcode);
  }
}

}  // namespace tuza::http::testing
