// websocket::upgrade() and Connection over real connections. Their frames: websocket_frames_test.cpp.
#include <tuza/http/router.h>
#include <tuza/http/testing.h>
#include <tuza/http/tests/websocket_testing.h>
#include <tuza/http/websocket.h>
#include <tuza/http/websocket/inflater.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/time/sleep.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class WebSocketTest : public WithProcs {};
TUZA_WITH_PROCS(WebSocketTest);

// Sends each message back, and reports why it ended.
Handler echo(websocket::Options options = {}, Chan<Error>* ended = nullptr) {
  return [options = std::move(options), ended](Request& req, ResponseWriter& res) {
    auto socket = websocket::upgrade(req, res, options);
    if (!socket) return;
    for (;;) {
      const auto message = socket->read();
      if (message && socket->write(*message)) continue;
      if (ended != nullptr) ended->send(message ? Error(Errc::kOther, "write") : message.error());
      return;
    }
  };
}

TEST_P(WebSocketTest, EchoesMessagesAndEndsWithTheClosingHandshake) {
  run_with(GetParam(), [] {
    Chan<Error> ended(1);
    TestServer server(echo({}, &ended));
    WebSocketClient client(server.address());
    EXPECT_NE(client.head().find("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), std::string::npos)
        << client.head();
    EXPECT_EQ(client.head().find("Sec-WebSocket-Extensions"), std::string::npos);
    client.send(frame(1, "Hello"));
    EXPECT_EQ(client.next_text(), "text:Hello");
    client.send(frame(2, std::string(100'000, '\0')));
    EXPECT_EQ(client.next_text(), "binary:" + std::string(100'000, '\0'));
    client.send(frame(1, "a", {.fin = false}) + frame(9, "now?") + frame(0, "b") + frame(1, ""));
    EXPECT_EQ(client.next_text(), "pong:now?");
    EXPECT_EQ(client.next_text(), "text:ab");
    EXPECT_EQ(client.next_text(), "text:");
    client.send(close_frame(3001, "bye"));
    EXPECT_EQ(client.next_text(), "close:3001:");
    EXPECT_EQ(client.next_text(), "end");
    EXPECT_TRUE(client.raw().closed());
    EXPECT_TRUE(ended.recv()->closed());
  });
}

TEST_P(WebSocketTest, FramesMayComeWithTheHandshakeAndByteByByte) {
  run_with(GetParam(), [] {
    TestServer server(echo());
    WebSocketClient client(server.address(), "", frame(1, "early") + frame(1, "bird").substr(0, 3));
    EXPECT_EQ(client.next_text(), "text:early");
    for (const char c : frame(1, "bird").substr(3) + frame(2, std::string(300, 'x'))) client.send({&c, 1});
    EXPECT_EQ(client.next_text(), "text:bird");
    EXPECT_EQ(client.next_text(), "binary:" + std::string(300, 'x'));
  });
}

TEST_P(WebSocketTest, ManySmallMessagesWrapAroundTheBuffer) {
  run_with(GetParam(), [] {
    TestServer server(echo());
    WebSocketClient client(server.address(), "X-Long: " + std::string(5000, 'x') + "\r\n");
    for (int i = 0; i < 1000; ++i) {
      const std::string text = std::string(static_cast<std::size_t>(i % 150), 'a') + std::to_string(i);
      client.send(frame(1, text));
      ASSERT_EQ(client.next_text(), "text:" + text);
    }
  });
}

TEST_P(WebSocketTest, WhatBreaksTheProtocolIsAnsweredWithItsCode) {
  run_with(GetParam(), [] {
    Chan<Error> ended(1);
    TestServer server(echo({.message_bytes_max = 1000}, &ended));
    const std::pair<std::string, std::string> cases[] = {
        {frame(1, "a", {.masked = false}), "close:1002:unmasked frame"},
        {frame(1, "\xff"), "close:1007:text is not UTF-8"},
        {frame(2, "", {.claimed_length = std::uint64_t{1} << 30}), "close:1009:message too long"},
    };
    for (const auto& [bytes, expected] : cases) {
      WebSocketClient client(server.address());
      client.send(frame(1, "before") + bytes);
      EXPECT_EQ(client.next_text(), "text:before");
      EXPECT_EQ(client.next_text(), expected);
      EXPECT_EQ(client.next_text(), "end");
      EXPECT_TRUE(ended.recv()->is(Errc::kBadMessage));
    }
    WebSocketClient client(server.address());
    client.send(frame(1, "cut off").substr(0, 5));
    client.raw().conn().close();
    EXPECT_TRUE(ended.recv()->is(Errc::kEndOfStream));
  });
}

TEST_P(WebSocketTest, TenPingsInARowAreAllAnswered) {
  run_with(GetParam(), [] {
    TestServer server(echo());
    WebSocketClient client(server.address());
    std::string pings;
    for (int i = 0; i < 10; ++i) pings += frame(9, "ping " + std::to_string(i));
    client.send(pings);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(client.next_text(), "pong:ping " + std::to_string(i));
  });
}

TEST_P(WebSocketTest, WhatComesBehindACloseFrameIsIgnored) {
  run_with(GetParam(), [] {
    TestServer server(echo());
    for (const std::string& behind : {frame(1, "late"), frame(9, "late"), frame(1, "half", {.fin = false}),
                                      close_frame(1001), std::string("\xff\xff no frame")}) {
      WebSocketClient client(server.address());
      client.send(frame(1, "before") + close_frame(1000, "bye") + behind);
      EXPECT_EQ(client.next_text(), "text:before");
      EXPECT_EQ(client.next_text(), "close:1000:");
      EXPECT_EQ(client.next_text(), "end");
    }
  });
}

TEST_P(WebSocketTest, TheServerClosesAndReadsUntilTheAnswer) {
  run_with(GetParam(), [] {
    Chan<std::string> seen(4);
    TestServer server([&](Request& req, ResponseWriter& res) {
      auto socket = websocket::upgrade(req, res);
      EXPECT_TRUE(socket->close(4000, "enough"));
      EXPECT_TRUE(socket->write_text("late").error().closed());
      EXPECT_FALSE(socket->close());
      while (auto message = socket->read()) seen.send(std::string(message->data));
      seen.send(std::to_string(socket->peer_close()->code) + socket->peer_close()->reason);
    });
    WebSocketClient client(server.address());
    EXPECT_EQ(client.next_text(), "close:4000:enough");
    client.send(frame(1, "on its way") + close_frame(4000, "ok"));
    EXPECT_EQ(client.next_text(), "end");
    EXPECT_EQ(seen.recv(), "on its way");
    EXPECT_EQ(seen.recv(), "4000ok");
  });
}

TEST_P(WebSocketTest, TheEndOfTheHandlerClosesAndAnExceptionSaysSo) {
  run_with(GetParam(), [] {
    TestServer server([](Request& req, ResponseWriter& res) {
      auto socket = websocket::upgrade(req, res);
      if (socket->read()->data == "throw") throw std::runtime_error("expected by the test");
    });
    for (const auto& [said, expected] :
         {std::pair("return", "close:1000:"), std::pair("throw", "close:1011:")}) {
      WebSocketClient client(server.address());
      client.send(frame(1, said));
      EXPECT_EQ(client.next_text(), expected);
      client.send(close_frame(1000));
      EXPECT_EQ(client.next_text(), "end");
    }
  });
}

TEST_P(WebSocketTest, WhoDoesNotAnswerTheCloseFrameIsLeft) {
  run_with(GetParam(), [] {
    TestServer server([](Request& req, ResponseWriter& res) {
      (void)websocket::upgrade(req, res, {.close_timeout = 20ms});
    });
    WebSocketClient client(server.address());
    EXPECT_EQ(client.next_text(), "close:1000:");
    EXPECT_EQ(client.next_text(), "end");
    EXPECT_TRUE(client.raw().closed());
  });
}

TEST_P(WebSocketTest, AContextEndsAReadAndTheNextOneGoesOn) {
  run_with(GetParam(), [] {
    Chan<int> gave_up(1);
    TestServer server([&](Request& req, ResponseWriter& res) {
      auto socket = websocket::upgrade(req, res);
      {
        const auto [ctx, cancel] = with_timeout(Context::background(), 10ms);
        EXPECT_TRUE(socket->read(ctx).error().timeout());
        EXPECT_TRUE(socket->write_text(ctx, "too late").error().timeout());
      }
      gave_up.send(1);
      EXPECT_TRUE(socket->write_text(std::string(socket->read()->data) + "!"));
    });
    WebSocketClient client(server.address());
    client.send(frame(1, "half").substr(0, 8));
    (void)gave_up.recv();
    client.send(frame(1, "half").substr(8));
    EXPECT_EQ(client.next_text(), "text:half!");
  });
}

TEST_P(WebSocketTest, AContextThatHasEndedCutsOffNoPong) {
  run_with(GetParam(), [] {
    TestServer server([&](Request& req, ResponseWriter& res) {
      auto socket = websocket::upgrade(req, res);
      const auto [ctx, cancel] = with_cancel(Context::background());
      cancel();
      EXPECT_TRUE(
          socket->read(ctx).error().cancelled());  // answers the ping, which has come with the handshake
      while (socket->read()) {
      }
    });
    WebSocketClient client(server.address(), "", frame(9, "p") + frame(1, "a").substr(0, 3));
    EXPECT_EQ(client.next_text(), "pong:p");
    client.send(frame(1, "a").substr(3) + close_frame(1000));
    EXPECT_EQ(client.next_text(), "close:1000:");
  });
}

TEST_P(WebSocketTest, SeveralGoroutinesWriteWhileOneReads) {
  run_with(GetParam(), [] {
    constexpr int kWriters = 8, kEach = 50;
    TestServer server([&](Request& req, ResponseWriter& res) {
      auto socket = websocket::upgrade(req, res);
      WaitGroup writers;
      for (int w = 0; w < kWriters; ++w) {
        writers.go([&socket, w] {
          const std::string text(static_cast<std::size_t>(1 + w * 700), static_cast<char>('a' + w));
          for (int i = 0; i < kEach; ++i) EXPECT_TRUE(socket->write_text(text));
        });
      }
      while (socket->read()) {
      }
      writers.wait();
    });
    WebSocketClient client(server.address());
    int pongs = 0, texts = 0;
    for (int i = 0; i < 20; ++i) client.send(frame(9, "p"));
    while (texts < kWriters * kEach) {
      const std::string got = client.next_text();
      if (got == "pong:p") {
        ++pongs;
        continue;
      }
      ASSERT_TRUE(got.starts_with("text:")) << got;
      const std::string_view text = std::string_view(got).substr(5);
      EXPECT_EQ(text.size(), 1u + static_cast<std::size_t>(text[0] - 'a') * 700);
      EXPECT_EQ(text.find_first_not_of(text[0]), std::string_view::npos);
      ++texts;
    }
    client.send(frame(9, "last") + close_frame(1000));
    for (std::string got; got != "end";) {
      got = client.next_text();
      pongs += got.starts_with("pong:");
    }
    EXPECT_GE(pongs, 1);
    EXPECT_LE(pongs, 21);
  });
}

TEST_P(WebSocketTest, AQuietPeerIsPingedAndStays) {
  run_with(GetParam(), [] {
    TestServer server(echo({.ping_interval = 2ms, .pong_timeout = 1h}));
    WebSocketClient client(server.address());
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(client.next_text(), "ping:");
      client.send(frame(10, ""));
    }
    client.send(frame(1, "alive"));
    std::string got;
    while ((got = client.next_text()) == "ping:") {
    }
    EXPECT_EQ(got, "text:alive");
  });
}

TEST_P(WebSocketTest, APeerThatAnswersNoPingIsLeft) {
  run_with(GetParam(), [] {
    Chan<Error> ended(1);
    // Pings that follow each other faster than the timeout do not postpone it.
    TestServer server(echo({.ping_interval = 1ms, .pong_timeout = 30ms}, &ended));
    WebSocketClient client(server.address());
    EXPECT_EQ(client.next_text(), "ping:");
    EXPECT_EQ(client.next_text(), "end");
    EXPECT_TRUE(ended.recv()->timeout());
  });
}

TEST_P(WebSocketTest, AReaderWithShortContextsLeavesItToo) {
  run_with(GetParam(), [] {
    Chan<Error> ended(1);
    TestServer server([&](Request& req, ResponseWriter& res) {
      auto socket = websocket::upgrade(req, res, {.ping_interval = 1ms, .pong_timeout = 30ms});
      for (;;) {
        const auto [ctx, cancel] = with_timeout(Context::background(), 3ms);
        const auto message = socket->read(ctx);
        if (message || ctx.done()) continue;
        return ended.send(message.error());
      }
    });
    WebSocketClient client(server.address());
    EXPECT_EQ(client.next_text(), "ping:");
    EXPECT_EQ(client.next_text(), "end");
    EXPECT_TRUE(ended.recv()->timeout());
  });
}

TEST_P(WebSocketTest, WhoCanReadNoMoreCannotWriteEither) {
  run_with(GetParam(), [] {
    for (const bool with_close_frame : {false, true}) {
      Chan<Error> read(1), written(1), closed(1);
      TestServer server([&](Request& req, ResponseWriter& res) {
        auto socket = websocket::upgrade(req, res);
        read.send(socket->read().error());
        written.send(socket->write_text("to whom?").error());
        closed.send(socket->close().error());
      });
      WebSocketClient client(server.address());
      if (with_close_frame) client.send(close_frame(1000));
      EXPECT_TRUE(client.raw().conn().close_write());
      EXPECT_TRUE(read.recv()->is(with_close_frame ? Errc::kClosed : Errc::kEndOfStream));
      EXPECT_TRUE(written.recv()->is(Errc::kClosed));
      EXPECT_TRUE(closed.recv()->is(Errc::kClosed));
    }
  });
}

TEST_P(WebSocketTest, NobodyIsPingedWhileTheHandlerDoesOtherWork) {
  run_with(GetParam(), [] {
    Chan<int> work(1);
    TestServer server([&](Request& req, ResponseWriter& res) {
      auto socket = websocket::upgrade(req, res, {.ping_interval = 1ms, .pong_timeout = 1h});
      EXPECT_EQ(socket->read()->data, "a");  // it has come with the handshake
      (void)work.recv();
      EXPECT_TRUE(socket->write_text("done"));
    });
    WebSocketClient client(server.address(), "", frame(1, "a"));
    sleep_for(20ms);  // pings would be due; if this is too short, the test proves less, and does not fail
    work.send(1);
    EXPECT_EQ(client.next_text(), "text:done");
  });
}

TEST_P(WebSocketTest, AtShutdownThePeerGets1001) {
  run_with(GetParam(), [] {
    Chan<Error> ended(1);
    TestServer server(echo({}, &ended));
    WebSocketClient client(server.address());
    client.send(frame(1, "a"));
    EXPECT_EQ(client.next_text(), "text:a");
    WaitGroup shutting;
    bool whole = false;
    shutting.go([&] { whole = server.server().shutdown(); });
    EXPECT_EQ(client.next_text(), "close:1001:");
    client.send(close_frame(1001));
    EXPECT_EQ(client.next_text(), "end");
    shutting.wait();
    EXPECT_TRUE(whole);
    EXPECT_TRUE(ended.recv()->closed());
  });
}

TEST_P(WebSocketTest, APeerThatReadsNothingStopsTheWriterAndIsCutOff) {
  run_with(GetParam(), [] {
    Chan<int> written(1);
    TestServer server(
        [&](Request& req, ResponseWriter& res) {
          auto socket = websocket::upgrade(req, res);
          const std::string piece(1 << 16, 'x');
          int count = 0;
          while (socket->write_text(piece)) ++count;
          EXPECT_TRUE(socket->read().error().timeout());
          written.send(count);
        },
        {.write_timeout = 100ms, .response_rate_min_bytes_per_second = 0});
    WebSocketClient client(server.address());
    EXPECT_LT(*written.recv(), 1000);  // 64 MB would be no back-pressure
  });
}

TEST_P(WebSocketTest, CompressesWhatBothSidesAgreeOn) {
  run_with(GetParam(), [] {
    TestServer server(echo({.deflate = {.enabled = true, .bytes_min = 10}}));
    WebSocketClient client(server.address(), "Sec-WebSocket-Extensions: permessage-deflate\r\n");
    EXPECT_NE(client.head().find("Sec-WebSocket-Extensions: permessage-deflate\r\n"), std::string::npos);
    client.send(frame(1, {"\xf2\x48\xcd\xc9\xc9\x07\x00", 7}, {.rsv = 4}));
    EXPECT_EQ(client.next_text(), "text:Hello");
    // 200,000 bytes that compress to one tenth, sent in fragments of the server.
    std::string large;
    for (int i = 0; large.size() < 200'000; ++i) large += std::to_string(i * i) + " ";
    client.send(frame(1, large));
    websocket::Inflater inflater(15, true);
    websocket::Gather text;
    ServerFrame got = client.next();
    EXPECT_EQ(got.opcode, 1);
    EXPECT_TRUE(got.compressed);
    for (;; got = client.next()) {
      ASSERT_EQ(inflater.feed(got.payload, text, 1 << 20), websocket::Inflater::Outcome::kDone);
      if (got.fin) break;
    }
    EXPECT_EQ(inflater.end(text, 1 << 20), websocket::Inflater::Outcome::kDone);
    EXPECT_TRUE(text.text() == large);
  });
}

TEST_P(WebSocketTest, CookiesAndTheSubprotocolGoWithTheAnswer) {
  run_with(GetParam(), [] {
    TestServer server([](Request& req, ResponseWriter& res) {
      res.set_cookie({.name = "a", .value = "b"});
      auto socket = websocket::upgrade(req, res, {.subprotocols = {"v2", "v1"}});
      EXPECT_TRUE(socket->write_text(socket->subprotocol()));
    });
    WebSocketClient client(server.address(),
                           "Sec-WebSocket-Protocol: v1, v3\r\nSec-WebSocket-Protocol: v2\r\n");
    EXPECT_NE(client.head().find("Sec-WebSocket-Protocol: v2\r\n"), std::string::npos) << client.head();
    EXPECT_NE(client.head().find("Set-Cookie: a=b"), std::string::npos);
    EXPECT_EQ(client.next_text(), "text:v2");
  });
}

TEST_P(WebSocketTest, WrongUsesThrow) {
  run_with(GetParam(), [] {
    Chan<int> checked(1);
    TestServer server([&](Request& req, ResponseWriter& res) {
      auto socket = websocket::upgrade(req, res);
      EXPECT_TRUE(socket->write_text("\xff").error().is(Errc::kBadMessage));
      EXPECT_THROW((void)socket->close(1005), std::invalid_argument);
      EXPECT_THROW((void)socket->close(1000, std::string(124, 'a')), std::invalid_argument);
      EXPECT_TRUE(socket->write_text("still here"));
      checked.send(1);
    });
    WebSocketClient client(server.address());
    EXPECT_EQ(client.next_text(), "text:still here");
    (void)checked.recv();
  });
}

}  // namespace
}  // namespace tuza::http::testing
