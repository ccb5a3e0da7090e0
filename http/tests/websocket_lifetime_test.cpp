// What ends a WebSocket besides its two sides: the server's shutdown.
#include <tuza/http/tests/websocket_testing.h>
#include <tuza/http/websocket.h>
#include <tuza/sched/sync/chan.h>

#include <string>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class WebSocketLifetimeTest : public WithProcs {};
TUZA_WITH_PROCS(WebSocketLifetimeTest);

TEST_P(WebSocketLifetimeTest, AHandshakeThatComesAfterTheBeginningOfAShutdownGets503) {
  run_with(GetParam(), [] {
    Chan<int> begun(1);
    Chan<Error> refused(1);
    TestServer server([&](Request& req, ResponseWriter& res) {
      begun.send(1);
      req.until_shutdown().wait();
      res.set_header("X-Kept", "1");
      auto socket = websocket::upgrade(req, res);
      refused.send(socket ? Error(Errc::kOther, "accepted") : socket.error());
    });
    RawClient client(server.address());
    client.send(handshake());
    (void)begun.recv();
    EXPECT_TRUE(server.server().shutdown());
    client.read_until_closed();
    const auto answers = parse_responses(client.received(), true);
    ASSERT_EQ(answers.size(), 1u) << client.received();
    EXPECT_EQ(answers[0].status, 503);
    EXPECT_EQ(answers[0].header("connection"), "close");
    EXPECT_EQ(answers[0].header("x-kept"), "1");
    EXPECT_TRUE(refused.recv()->closed());
  });
}

}  // namespace
}  // namespace tuza::http::testing
