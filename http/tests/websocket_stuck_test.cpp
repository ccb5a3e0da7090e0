// A WebSocket whose peer reads nothing, while pings are due. In memory, where a full buffer is exactly full.
#include <tuza/http/testing_server.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/http/websocket.h>
#include <tuza/sched/sync/chan.h>

#include <functional>
#include <string>

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

}  // namespace
}  // namespace tuza::http::testing
