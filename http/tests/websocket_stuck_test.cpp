// A WebSocket whose peer reads nothing, while pings or pongs are due. In memory, where a full buffer is exactly full.
#include <tuza/http/testing_server.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/http/tests/websocket_testing.h>
#include <tuza/http/websocket.h>
#include <tuza/sched/sync/chan.h>

#include <array>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;
using websocket::DialOptions;

class WebSocketStuckTest : public WithProcs {};
TUZA_WITH_PROCS(WebSocketStuckTest);

// A connection in memory whose server reads nothing, and which has taken what it can.
void with_full_connection(const DialOptions& options,
                          const std::function<void(websocket::Connection&)>& body) {
  constexpr std::size_t kBufferBytes = 32 << 10, kHeadBytes = 8;
  Chan<int> over(1);
  Server server(
      [&over](Request& req, ResponseWriter& res) {
        auto socket = websocket::upgrade(req, res, {.ping_interval = 0ms, .close_timeout = 1ms});
        (void)over.recv();
      },
      {.buffer_bytes = kBufferBytes});
  {
    auto socket = websocket::dial(Context::background(), server.client(), server.url(), options);
    ASSERT_TRUE(socket) << socket.error().message();
    ASSERT_TRUE(socket->write_text(std::string(kBufferBytes - kHeadBytes, 'x')));
    body(*socket);
  }
  over.send(1);
}

TEST_P(WebSocketStuckTest, APingThatCannotBeSentIsATimeoutOfTheReader) {
  run_with(GetParam(), [] {
    const DialOptions options{.ping_interval = 1ms, .pong_timeout = 20ms, .write_timeout = 0ms};
    with_full_connection(options, [](websocket::Connection& socket) {
      EXPECT_TRUE(socket.read().error().timeout());
      EXPECT_FALSE(socket.peer_close());
    });
  });
}

TEST_P(WebSocketStuckTest, APingThatIsStuckDoesNotHoldTheEndUp) {
  run_with(GetParam(), [] {
    const DialOptions options{
        .ping_interval = 1ms, .pong_timeout = 1h, .close_timeout = 20ms, .write_timeout = 0ms};
    with_full_connection(options, [](websocket::Connection& socket) {
      // Time for the ping to begin; if it is too short, the test proves less, and does not fail.
      const auto [ctx, cancel] = with_timeout(Context::background(), 50ms);
      EXPECT_TRUE(socket.read(ctx).error().timeout());
    });
  });
}

constexpr std::size_t kServersBuffer = 32 << 10, kServersHead = 4;

// After the handshake: leaves `room` bytes in the buffer for what the client receives.
void fill(websocket::Connection& socket, std::size_t room) {
  ASSERT_EQ(socket.read()->data, "fill");
  ASSERT_TRUE(socket.write_text(std::string(kServersBuffer - kServersHead - room, 'x')));
}

// A client in memory that has made its handshake, and reads only when it is told to.
class SlowClient {
 public:
  explicit SlowClient(Server& server) : conn_(server.dial().value()) {
    conn_.set_deadline(net::time_after_now(RawClient::kPatience));
    send(handshake());
    read_until("\r\n\r\n");
    received_.clear();
  }
  void send(std::string_view bytes) { EXPECT_TRUE(conn_.write_all(bytes)); }
  // "text:" and the length, "pong:" and the payload, "close".
  std::string next() {
    for (;;) {
      if (const auto frame = parse_server_frame(received_)) {
        received_.erase(0, frame->bytes);
        if (frame->opcode == 1) return "text:" + std::to_string(frame->payload.size());
        return frame->opcode == 10 ? "pong:" + frame->payload : "close";
      }
      if (!read()) return "end";
    }
  }

 private:
  bool read() {
    std::array<char, 4096> buffer;
    const Result<std::size_t> n = conn_.read(std::as_writable_bytes(std::span(buffer)));
    received_.append(buffer.data(), n.value_or(0));
    return n.value_or(0) > 0;
  }
  void read_until(std::string_view end) {
    while (!received_.ends_with(end)) ASSERT_TRUE(read());
  }

  net::Conn conn_;
  std::string received_;
};

// The pong finds no room, or room for a part of its frame; the reader waits for neither.
TEST_P(WebSocketStuckTest, APongThatFindsNoRoomHoldsNobodyUp) {
  run_with(GetParam(), [] {
    for (const std::size_t room : {0uz, 1uz, 2uz, 5uz}) {
      Chan<std::string> seen(1);
      Chan<int> filled(1);
      Server server(
          [&](Request& req, ResponseWriter& res) {
            auto socket = websocket::upgrade(req, res, {.ping_interval = 0ms});
            ASSERT_TRUE(socket);
            fill(*socket, room);
            filled.send(1);
            const auto [ctx, cancel] = with_timeout(req.context(), 50ms);
            EXPECT_TRUE(socket->read(ctx).error().is(Errc::kTimeout));
            seen.send("timeout");
            while (auto message = socket->read()) ASSERT_TRUE(socket->write(*message));
            EXPECT_EQ(socket->peer_close()->code, 1000);
          },
          {.buffer_bytes = kServersBuffer});
      SlowClient client(server);
      client.send(frame(1, "fill"));
      (void)filled.recv();
      for (const char* payload : {"first", "second", "third"}) client.send(frame(9, payload));
      EXPECT_EQ(seen.recv(), "timeout");
      EXPECT_EQ(client.next(), "text:" + std::to_string(kServersBuffer - kServersHead - room));
      // The first one was under way; of those that came meanwhile only the last is answered.
      EXPECT_EQ(client.next(), "pong:first");
      EXPECT_EQ(client.next(), "pong:third");
      client.send(frame(1, "hello"));
      EXPECT_EQ(client.next(), "text:5");
      client.send(close_frame(1000));
      EXPECT_EQ(client.next(), "close");
    }
  });
}

TEST_P(WebSocketStuckTest, APongThatIsStuckDoesNotHoldTheEndUp) {
  run_with(GetParam(), [] {
    Chan<int> filled(1), ended(1);
    Server server(
        [&](Request& req, ResponseWriter& res) {
          {
            auto socket = websocket::upgrade(req, res, {.ping_interval = 0ms, .close_timeout = 20ms});
            ASSERT_TRUE(socket);
            fill(*socket, 1);
            filled.send(1);
            const auto [ctx, cancel] = with_timeout(req.context(), 50ms);
            EXPECT_TRUE(socket->read(ctx).error().is(Errc::kTimeout));
          }
          ended.send(1);
        },
        {.server = {.write_timeout = 0ms}, .buffer_bytes = kServersBuffer});
    SlowClient client(server);
    client.send(frame(1, "fill"));
    (void)filled.recv();
    client.send(frame(9, "stuck"));
    EXPECT_TRUE(ended.recv());
  });
}

TEST_P(WebSocketStuckTest, AWriterThatIsStuckDoesNotHoldTheShutdownUp) {
  run_with(GetParam(), [] {
    Chan<int> filled(1), ended(1);
    Server server(
        [&](Request& req, ResponseWriter& res) {
          auto socket = websocket::upgrade(req, res, {.ping_interval = 0ms, .close_timeout = 20ms});
          ASSERT_TRUE(socket);
          fill(*socket, 1);
          filled.send(1);
          EXPECT_TRUE(socket->write_text("stuck").error().closed());
          ended.send(1);
        },
        {.server = {.write_timeout = 0ms, .shutdown_timeout = 1h}, .buffer_bytes = kServersBuffer});
    SlowClient client(server);
    client.send(frame(1, "fill"));
    (void)filled.recv();
    EXPECT_TRUE(server.server().shutdown());
    EXPECT_TRUE(ended.recv());
  });
}

}  // namespace
}  // namespace tuza::http::testing
