// ResponseWriter::hijack() over real connections, Request::until_shutdown(), and upgrades that nobody serves.
#include <tuza/http/router.h>
#include <tuza/http/testing.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/sched/sync/chan.h>

#include <array>
#include <span>
#include <string>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class HijackTest : public WithProcs {};
TUZA_WITH_PROCS(HijackTest);

// Answers 101, and then sends back what it gets.
void echo(Request&, ResponseWriter& res) {
  Result<HijackedStream> stream = res.hijack();
  ASSERT_TRUE(stream) << stream.error().message();
  if (!stream->write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n")) return;
  std::array<std::byte, 4> piece;
  while (const auto n = stream->read(piece)) {
    if (*n == 0 || !stream->write(std::span(piece).first(*n))) return;
  }
}

TEST_P(HijackTest, ServesFirstWhatHadArrivedAndThenTheConnection) {
  run_with(GetParam(), [] {
    TestServer server(echo);
    RawClient client(server.address());
    client.send(get("/") + "early bytes, ");
    client.read_until([&] { return client.received().ends_with("early bytes, "); });
    client.send("late bytes");
    client.read_until([&] { return client.received().ends_with("late bytes"); });
    ASSERT_TRUE(client.conn().close_write());
    client.read_until_closed();
    EXPECT_TRUE(client.closed());
    EXPECT_TRUE(client.received().ends_with("\r\n\r\nearly bytes, late bytes")) << client.received();
  });
}

TEST_P(HijackTest, EarlierAnswersLeaveBefore) {
  run_with(GetParam(), [] {
    Router router = hello_router();
    router.handle("GET /up", echo);
    TestServer server(std::move(router));
    RawClient client(server.address());
    client.send(get("/") + get("/up") + get("/"));  // the last one belongs to the stream
    ASSERT_TRUE(client.conn().close_write());
    client.read_until_closed();
    const std::string& all = client.received();
    EXPECT_LT(all.find("Hello, World!"), all.find("101 Switching"));
    EXPECT_TRUE(all.ends_with("\r\n\r\n" + get("/"))) << all;
  });
}

// A proxy in a few lines: what it relays is the answer of another server.
TEST_P(HijackTest, ConnectOpensATunnel) {
  run_with(GetParam(), [] {
    TestServer origin(hello_router());
    Router proxy;
    proxy.handle("CONNECT /", [](Request& req, ResponseWriter& res) {
      Result<net::Conn> there = net::dial("tcp", req.host());
      if (!there) return res.error(502);
      Result<HijackedStream> here = res.hijack(200);
      ASSERT_TRUE(here) << here.error().message();
      ASSERT_TRUE(here->write("HTTP/1.1 200 Connection established\r\n\r\n"));
      std::array<std::byte, 4096> piece;
      const Result<std::size_t> asked = here->read(piece);
      ASSERT_TRUE(asked && there->write_all(std::span(piece).first(*asked)));
      const Result<std::size_t> answer = there->read(piece);
      ASSERT_TRUE(answer && here->write(std::span(piece).first(*answer)));
    });
    proxy.handle("CONNECT refused.example/",
                 [](Request&, ResponseWriter& res) { res.text(403, "not there"); });
    proxy.handle("CONNECT forgotten.example/", [](Request&, ResponseWriter& res) { res.text("a body"); });
    TestServer server(std::move(proxy), {.connect = true});
    const auto connect = [&](const std::string& target, const std::string& inside) {
      RawClient client(server.address());
      client.send("CONNECT " + target + " HTTP/1.1\r\nHost: " + target + "\r\n\r\n" + inside);
      client.read_until_closed();
      return client.received();
    };
    const std::string through = connect(origin.address(), get("/"));
    EXPECT_TRUE(through.starts_with("HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\n"))
        << through;
    EXPECT_TRUE(through.ends_with("Hello, World!")) << through;
    const std::string last = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    EXPECT_TRUE(connect("127.0.0.1:1", last).starts_with("HTTP/1.1 502 "));
    // Refused, the connection is one of HTTP as before.
    const std::string refused = connect("refused.example:443", last);
    EXPECT_TRUE(refused.contains("not thereHTTP/1.1 405 ")) << refused;
    // Who answers 2xx and opens no tunnel must not leave the client with a body in it.
    const std::string forgotten = connect("forgotten.example:443", get("/"));
    EXPECT_TRUE(forgotten.ends_with("\r\n\r\n") && !forgotten.contains("Content-Length")) << forgotten;
    EXPECT_TRUE(forgotten.contains("Connection: close\r\n")) << forgotten;
    for (const char* bad : {"a", "a:", ":1", "/", "http://a:1/", "[::1]", "a:1/x", "a:x", "a:123456"}) {
      EXPECT_TRUE(connect(bad, "").starts_with("HTTP/1.1 400 ")) << bad;
    }
  });
}

TEST_P(HijackTest, NothingElseCanBeWrittenAndMiddlewareSeesTheStatus) {
  run_with(GetParam(), [] {
    Chan<int> status(1), refused(1);
    TestServer server(with(
        [&](Request&, ResponseWriter& res) {
          Result<HijackedStream> stream = res.hijack();
          int count = 0;
          const auto expect_refused = [&](auto call) {
            try {
              call();
            } catch (const std::logic_error&) {
              ++count;
            }
          };
          expect_refused([&] { (void)res.write("x"); });
          expect_refused([&] { res.text("x"); });
          expect_refused([&] { res.set_header("a", "b"); });
          expect_refused([&] { (void)res.hijack(); });
          refused.send(count);
          (void)stream->write("bye");
        },
        [&](Handler next) -> Handler {
          return [&, next = std::move(next)](Request& req, ResponseWriter& res) {
            observe(next, req, res, [&](int seen) { status.send(seen); });
          };
        }));
    RawClient client(server.address());
    client.send(get("/"));
    client.read_until_closed();
    EXPECT_EQ(client.received(), "bye");
    EXPECT_EQ(refused.recv(), 4);
    EXPECT_EQ(status.recv(), 101);
  });
}

TEST_P(HijackTest, ARequestWithAnUnreadBodyIsAnsweredAsUsual) {
  run_with(GetParam(), [] {
    TestServer server([](Request&, ResponseWriter& res) {
      const Result<HijackedStream> stream = res.hijack();
      res.text(stream ? "taken" : stream.error().message());
    });
    const Response res = fetch(server.address(), post("/", "body"));
    EXPECT_EQ(res.status, 200);
    EXPECT_NE(res.body.find("unread body"), std::string::npos) << res.body;
  });
}

TEST_P(HijackTest, ShutdownIsAnnouncedAndTheStreamCutOffAtTheDeadline) {
  run_with(GetParam(), [] {
    Chan<int> begun(1);
    Chan<Error> notice(1), ended(1);
    TestServer server(
        [&](Request& req, ResponseWriter& res) {
          Result<HijackedStream> stream = res.hijack();
          begun.send(1);
          std::array<std::byte, 8> piece;
          const auto until = stream->read(req.until_shutdown(), piece);
          notice.send(until.error());
          ended.send(stream->read(piece).error());
        },
        {.shutdown_timeout = 50ms});
    RawClient client(server.address());
    client.send(get("/"));
    (void)begun.recv();
    EXPECT_FALSE(server.server().shutdown());
    const Error cause = *notice.recv();
    EXPECT_EQ(cause.op(), "shutdown");
    EXPECT_EQ(cause.code(), Errc::kCancelled);
    EXPECT_EQ(ended.recv()->code(), Errc::kClosed);
  });
}

TEST_P(HijackTest, AStreamThatHeedsTheNoticeIsNotCutOff) {
  run_with(GetParam(), [] {
    Chan<int> begun(1);
    TestServer server([&](Request& req, ResponseWriter& res) {
      ASSERT_TRUE(res.write("begin "));
      ASSERT_TRUE(res.flush());
      begun.send(1);
      req.until_shutdown().wait();
      EXPECT_EQ(req.until_shutdown().cause().message(), "shutdown SIGINT: context cancelled");
      EXPECT_FALSE(req.context().done());
      ASSERT_TRUE(res.write("end"));
    });
    RawClient client(server.address());
    client.send(get("/"));
    (void)begun.recv();
    EXPECT_TRUE(server.server().shutdown("SIGINT"));
    client.read_until_closed();
    EXPECT_TRUE(client.received().ends_with("3\r\nend\r\n0\r\n\r\n")) << client.received();
  });
}

TEST_P(HijackTest, TheNoticeAlsoEndsWithTheClient) {
  run_with(GetParam(), [] {
    Chan<int> begun(1);
    Chan<Error> seen(1);
    TestServer server([&](Request& req, ResponseWriter&) {
      begun.send(1);
      req.until_shutdown().wait();
      seen.send(req.until_shutdown().cause());
    });
    RawClient client(server.address());
    client.send(get("/"));
    (void)begun.recv();
    client.conn().close();
    EXPECT_EQ(seen.recv()->code(), Errc::kClosed);
  });
}

TEST_P(HijackTest, InMemoryItFailsAndTheHandlerMayAnswer) {
  run_with(GetParam(), [] {
    const CallResult res = call(
        [](Request&, ResponseWriter& writer) {
          const Result<HijackedStream> stream = writer.hijack();
          EXPECT_FALSE(stream);
          writer.text(503, stream.error().message());
        },
        "GET /");
    EXPECT_EQ(res.status, 503);
    EXPECT_NE(res.body.find("no connection"), std::string::npos) << res.body;
  });
}

TEST_P(HijackTest, UpgradesThatNobodyServesAreIgnored) {
  run_with(GetParam(), [] {
    TestServer server(hello_router());
    for (const std::string protocol : {"h2c", "websocket", "unknown/7"}) {
      RawClient client(server.address());
      const std::string request =
          "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: " + protocol +
          "\r\nHTTP2-Settings: AAMAAABk\r\n\r\n";
      client.send(request + request);
      const auto all = client.read_responses(2);
      ASSERT_EQ(all.size(), 2u) << protocol;
      for (const Response& res : all) EXPECT_EQ(res.status, 200);
    }
  });
}

TEST_P(HijackTest, ThePrefaceOfHttp2IsRefused) {
  run_with(GetParam(), [] {
    TestServer server(hello_router());
    RawClient client(server.address());
    client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    client.read_until_closed();
    EXPECT_TRUE(client.received().starts_with("HTTP/1.1 505 ")) << client.received();
    EXPECT_NE(client.received().find("Connection: close\r\n"), std::string::npos);
  });
}

}  // namespace
}  // namespace tuza::http::testing
