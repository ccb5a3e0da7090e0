// What ends a WebSocket besides its two sides, the server's shutdown; and what does not, the time limits of its request.
#include <tuza/http/middleware.h>
#include <tuza/http/middleware/timeout.h>
#include <tuza/http/tests/websocket_testing.h>
#include <tuza/http/websocket.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/time/clock.h>

#include <chrono>
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

// Sends each message back, and reports why it ended.
Handler echo_with_grace(std::chrono::milliseconds grace, Chan<Error>& ended) {
  return [grace, &ended](Request& req, ResponseWriter& res) {
    auto socket = websocket::upgrade(req, res, {.shutdown_grace = grace});
    for (;;) {
      const auto message = socket->read();
      if (!message) return ended.send(message.error());
      EXPECT_TRUE(socket->write(*message));
    }
  };
}

TEST_P(WebSocketLifetimeTest, WithAGraceAConnectionMayEndByItselfDuringAShutdown) {
  run_with(GetParam(), [] {
    Chan<int> begun(1);
    TestServer server([&](Request& req, ResponseWriter& res) {
      auto socket = websocket::upgrade(req, res, {.shutdown_grace = 1h});
      begun.send(1);
      EXPECT_EQ(socket->read(req.until_shutdown()).error().op(), "shutdown");
      EXPECT_TRUE(socket->write_text("one more?"));
      EXPECT_EQ(socket->read()->data, "no");
    });
    WebSocketClient client(server.address());
    (void)begun.recv();
    WaitGroup shutting;
    bool whole = false;
    shutting.go([&] { whole = server.server().shutdown(); });
    EXPECT_EQ(client.next_text(), "text:one more?");
    client.send(frame(1, "no"));
    EXPECT_EQ(client.next_text(), "close:1000:");
    client.send(close_frame(1000));
    EXPECT_EQ(client.next_text(), "end");
    shutting.wait();
    EXPECT_TRUE(whole);
  });
}

TEST_P(WebSocketLifetimeTest, AtTheEndOfTheGraceThePeerGets1001) {
  run_with(GetParam(), [] {
    constexpr auto kGrace = 30ms;
    Chan<Error> ended(1);
    TestServer server(echo_with_grace(kGrace, ended));
    WebSocketClient client(server.address());
    client.send(frame(1, "a"));
    EXPECT_EQ(client.next_text(), "text:a");
    WaitGroup shutting;
    bool whole = false;
    const auto began = tuza::now();
    shutting.go([&] { whole = server.server().shutdown(); });
    EXPECT_EQ(client.next_text(), "close:1001:");
    EXPECT_GE(tuza::now() - began, kGrace);
    client.send(close_frame(1001));
    EXPECT_EQ(client.next_text(), "end");
    shutting.wait();
    EXPECT_TRUE(whole);
  });
}

TEST_P(WebSocketLifetimeTest, AGraceLongerThanTheShutdownIsCutOff) {
  run_with(GetParam(), [] {
    Chan<Error> ended(1);
    TestServer server(echo_with_grace(1h, ended), {.shutdown_timeout = 30ms});
    WebSocketClient client(server.address());
    client.send(frame(1, "a"));
    EXPECT_EQ(client.next_text(), "text:a");
    EXPECT_FALSE(server.server().shutdown());
    EXPECT_EQ(client.next_text(), "end");
    EXPECT_TRUE(ended.recv()->closed());
  });
}

TEST_P(WebSocketLifetimeTest, ATimeoutOfTheRequestEndsItsContextsAndNotTheConnection) {
  run_with(GetParam(), [] {
    Chan<int> ended(1);
    const auto handler = [&](Request& req, ResponseWriter& res) {
      auto socket = websocket::upgrade(req, res);
      EXPECT_TRUE(socket->read(req.until_shutdown()).error().timeout());
      EXPECT_TRUE(socket->read(req.context()).error().timeout());
      ended.send(1);
      while (auto message = socket->read()) EXPECT_TRUE(socket->write(*message));
    };
    for (const bool by_middleware : {true, false}) {
      TestServer server(by_middleware ? with(handler, timeout(20ms)) : Handler(handler),
                        {.request_timeout = by_middleware ? 0ms : 20ms});
      WebSocketClient client(server.address());
      (void)ended.recv();
      client.send(frame(1, "goes on"));
      EXPECT_EQ(client.next_text(), "text:goes on");
      client.send(close_frame(1000));
      EXPECT_EQ(client.next_text(), "close:1000:");
      EXPECT_EQ(client.next_text(), "end");
    }
  });
}

}  // namespace
}  // namespace tuza::http::testing
