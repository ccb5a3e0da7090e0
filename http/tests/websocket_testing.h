// Frames for the tests of WebSockets: those of a client, and a reader of those of the server.
#pragma once

#include <tuza/http/tests/http_testing.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tuza::http::testing {

struct FrameShape {
  bool fin = true;
  int rsv = 0;  // 4: RSV1
  bool masked = true;
  std::uint32_t mask = 0x37fa213d;
  int length_bytes = 0;                              // of the longer length; 0: the shortest form
  std::optional<std::uint64_t> claimed_length = {};  // instead of the payload's
};

// A frame as a client sends it.
std::string frame(int opcode, std::string_view payload, const FrameShape& shape = {});
std::string close_frame(int code, std::string_view reason = {});

struct ServerFrame {
  int opcode = -1;
  bool fin = false, compressed = false;
  std::string payload;
  std::size_t bytes = 0;
};
// The first frame in `bytes`; nullopt: not complete. A masked one fails the test.
std::optional<ServerFrame> parse_server_frame(std::string_view bytes);

std::string handshake(std::string_view fields = "");

// A client that has made its handshake.
class WebSocketClient {
 public:
  // `early`: sent in one piece with the handshake.
  explicit WebSocketClient(const std::string& address, std::string_view fields = "",
                           std::string_view early = "");

  [[nodiscard]] const std::string& head() const { return head_; }  // of the answer
  void send(std::string_view bytes) { client_.send(bytes); }
  // The next frame; opcode -1 if the stream has ended.
  ServerFrame next();
  // "text:...", "binary:...", "close:1000:reason", "ping:", "pong:", "end".
  std::string next_text();
  RawClient& raw() { return client_; }

 private:
  RawClient client_;
  std::string head_;
  std::size_t at_ = 0;  // of what has been taken of client_.received()
};

}  // namespace tuza::http::testing
