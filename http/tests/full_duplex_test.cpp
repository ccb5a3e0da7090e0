// One goroutine reads the body while another one writes the response: enable_full_duplex().
#include <tuza/http/testing.h>
#include <tuza/http/testing_server.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/netpoll/tests/tls_testing.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/wait_group.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class FullDuplexTest : public WithProcs {};
TUZA_WITH_PROCS(FullDuplexTest);

// Sends each piece of the body back, by another goroutine than the one that reads.
void echo_at_once(Request& req, ResponseWriter& res) {
  if (!res.enable_full_duplex()) return;
  Chan<std::string> pieces(4);
  WaitGroup reading;
  reading.go([&] {
    std::array<std::byte, 1024> buffer;
    for (;;) {
      const Result<std::size_t> n = req.read_body(buffer);
      if (!n || *n == 0) return pieces.close();
      pieces.send(std::string(reinterpret_cast<const char*>(buffer.data()), *n));
    }
  });
  for (const std::string& piece : pieces) {
    if (res.write(piece)) (void)res.flush();
  }
  reading.wait();
}

std::string chunk(std::string_view text) {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", text.size());
  return std::string(size).append(text).append("\r\n");
}

// What has come of the response's body.
std::string body_so_far(RawClient& client) {
  const auto got = parse_responses(client.received(), client.closed());
  return got.empty() ? "" : got.back().body;
}

TEST_P(FullDuplexTest, APieceComesBackBeforeTheNextOneIsSent) {
  run_with(GetParam(), [] {
    static net::testing::Authority authority;
    const auto tls = net::TlsServer::load({.certificates = {authority.issue("site")}}).value();
    for (const bool encrypted : {false, true}) {
      Server server(echo_at_once, {.socket = true, .tls = encrypted ? tls : nullptr});
      net::Conn conn = server.dial().value();
      if (encrypted) {
        conn = net::TlsClient::load({.insecure_skip_verify = true})
                   .value()
                   ->start(std::move(conn), "localhost")
                   .value();
      }
      RawClient client(std::move(conn));
      client.send("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
      std::string all;
      for (int i = 0; i < 50; ++i) {
        const std::string piece = "piece " + std::to_string(i) + ";";
        all += piece;
        client.send(chunk(piece));
        client.read_until([&] { return client.received().contains(piece); });
      }
      client.send("0\r\n\r\n");
      client.read_until_closed();
      EXPECT_EQ(body_so_far(client), all);
    }
  });
}

// Neither side waits for the other one: both directions are full at once.
TEST_P(FullDuplexTest, BothDirectionsMoveMuch) {
  run_with(GetParam(), [] {
    constexpr std::size_t kBytes = 8 << 20;
    Server server(echo_at_once, {.server = {.body_bytes_max = kBytes}, .socket = true});
    RawClient client(server.dial().value());
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(kBytes) + "\r\n\r\n");
    WaitGroup sending;
    sending.go([&] {
      const std::string piece(1 << 16, 'x');
      for (std::size_t sent = 0; sent < kBytes; sent += piece.size()) {
        if (!client.conn().write_all(piece)) return;
      }
    });
    client.read_until_closed();
    sending.wait();
    EXPECT_EQ(body_so_far(client), std::string(kBytes, 'x'));
  });
}

TEST_P(FullDuplexTest, AClientThatWaitsGetsIts100) {
  run_with(GetParam(), [] {
    Server server(echo_at_once);
    RawClient client(server.dial().value());
    client.send("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    client.read_until([&] { return client.received() == "HTTP/1.1 100 Continue\r\n\r\n"; });
    client.send("hello");
    client.read_until_closed();
    EXPECT_EQ(body_so_far(client), "hello");
  });
}

TEST_P(FullDuplexTest, ItWorksInACallAndNotForABodyThatIsTooLarge) {
  run_with(GetParam(), [] {
    int next = 0;
    const auto pieces = [&]() -> Result<std::string> { return ++next <= 3 ? std::to_string(next) : ""; };
    EXPECT_EQ(call(echo_at_once, "POST /", {.next_piece = pieces}).body, "123");
    const CallResult refused =
        call(echo_at_once, "POST /", {.body = "12345", .server = {.body_bytes_max = 4}});
    EXPECT_EQ(refused.status, 413);
    Server server(echo_at_once, {.server = {.body_bytes_max = 4}});
    RawClient client(server.dial().value());
    client.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
    client.read_until_closed();
    EXPECT_TRUE(client.received().starts_with("HTTP/1.1 413 ")) << client.received();
  });
}

}  // namespace
}  // namespace tuza::http::testing
