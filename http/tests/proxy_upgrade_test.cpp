// Upgraded connections through the reverse proxy.
#include <gtest/gtest.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/http/testing.h>
#include <tuza/http/tests/client_testing.h>

#include <array>
#include <string>
#include <string_view>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class ProxyUpgradeTest : public WithProcs {};
TUZA_WITH_PROCS(ProxyUpgradeTest);

constexpr std::string_view kUpgrade =
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";

// An upstream that has one word to say.
void one_word(net::Conn& conn, int) {
  ScriptedServer::read_request(conn);
  (void)conn.write_all("HTTP/1.1 101 OK\r\nUpgrade: echo\r\nConnection: upgrade\r\n\r\nhere");
  wait_for_end(conn);
}

TEST_P(ProxyUpgradeTest, PassesUpgradedConnectionsOn) {
  run_with(GetParam(), [] {
    AskedFor asked_for;
    ScriptedServer upstream([&](net::Conn& conn, int) {
      asked_for.add(ScriptedServer::read_request(conn));
      (void)conn.write_all(
          "HTTP/1.1 101 OK\r\nUpgrade: echo\r\nConnection: upgrade\r\nX-Key: 1\r\n\r\nfirst ");
      std::array<char, 64> piece;
      while (const auto n = conn.read(std::span(piece))) {
        if (*n == 0) return (void)conn.write_all(" last");  // the client has ended its side only
        if (!conn.write_all(std::string_view(piece.data(), *n))) return;
      }
    });
    ReverseProxy handler({.upstreams = {upstream.url("")}, .upgrades = {"websocket", "Echo"}});
    TestServer proxy(handler);
    RawClient client(proxy.address());
    client.send(
        "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: echo\r\nX-Mine: "
        "1\r\n\r\nearly");
    client.read_until([&] { return client.received().ends_with("first early"); });
    client.send(" late");
    client.read_until([&] { return client.received().ends_with("early late"); });
    EXPECT_EQ(handler.stats()[0].active, 1u);
    ASSERT_TRUE(client.conn().close_write());
    client.read_until_closed();
    EXPECT_EQ(client.received(),
              "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\nX-Key: "
              "1\r\n\r\nfirst early late last");
    const std::string asked = asked_for.take().at(0);
    EXPECT_TRUE(asked.contains("\r\nConnection: Upgrade\r\nUpgrade: echo\r\n")) << asked;
    EXPECT_TRUE(asked.contains("\r\nX-Mine: 1\r\n")) << asked;
    EXPECT_EQ(handler.stats()[0].failures, 0u);
  });
}

TEST_P(ProxyUpgradeTest, PassesNoOtherUpgradeOn) {
  run_with(GetParam(), [] {
    const auto asking_for = [](std::string_view protocol) {
      return "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: "
             "x\r\nUpgrade: " +
             std::string(protocol) + "\r\n\r\n";
    };
    TestServer upstream(
        [](Request& req, ResponseWriter& res) { res.text(req.header("Upgrade").value_or("none")); });
    TestServer proxy(ReverseProxy({.upstreams = {url_of(upstream, "")}}));
    EXPECT_EQ(fetch(proxy.address(), asking_for("h2c")).body, "none");
    for (const char* protocols :
         {"WebSocket", "WebSocket, h2c", "h2c, WebSocket", "h2c,,WebSocket/13,WebSocket"})
      EXPECT_EQ(fetch(proxy.address(), asking_for(protocols)).body, "WebSocket") << protocols;
    constexpr std::string_view kOld = "GET / HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    EXPECT_EQ(fetch(proxy.address(), kOld).body, "none") << "HTTP/1.0 knows no Upgrade";
    ScriptedServer other("HTTP/1.1 101 OK\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n");
    TestServer second(ReverseProxy({.upstreams = {other.url("")}}));
    EXPECT_EQ(fetch(second.address(), asking_for("websocket")).status, 502);
  });
}

TEST_P(ProxyUpgradeTest, A426NamesTheProtocolsThatGetThrough) {
  run_with(GetParam(), [] {
    ScriptedServer upstream(
        "HTTP/1.1 426 No\r\nUpgrade: h2c, websocket\r\nConnection: upgrade\r\nContent-Length: 0\r\n\r\n");
    TestServer proxy(ReverseProxy({.upstreams = {upstream.url("")}}));
    const Response res = fetch(proxy.address(), get("/"));
    EXPECT_EQ(res.status, 426);
    EXPECT_EQ(res.header("upgrade"), "websocket");
    EXPECT_EQ(res.header("connection"), "Upgrade");
    TestServer second(ReverseProxy({.upstreams = {upstream.url("")}, .upgrades = {}}));
    EXPECT_FALSE(fetch(second.address(), get("/")).has("upgrade"));
  });
}

TEST_P(ProxyUpgradeTest, AnUpgradeNeedsAConnection) {
  run_with(GetParam(), [] {
    ScriptedServer upstream("HTTP/1.1 101 OK\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n");
    ReverseProxy proxy({.upstreams = {upstream.url("")}});
    const CallResult res =
        call(proxy, "GET /", {.headers = {{"Connection", "upgrade"}, {"Upgrade", "websocket"}}});
    EXPECT_EQ(res.status, 501);
    EXPECT_EQ(proxy.stats()[0].failures, 0u) << "it was not the upstream's fault";
  });
}

TEST_P(ProxyUpgradeTest, AnUpgradeThatComesAfterTheBeginningOfAShutdownGets503) {
  run_with(GetParam(), [] {
    ScriptedServer upstream("HTTP/1.1 101 OK\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n");
    ReverseProxy proxy({.upstreams = {upstream.url("")}});
    auto [shutdown, begin] = with_cancel(Context::background());
    begin();
    const CallResult res =
        call(proxy, "GET /",
             {.headers = {{"Connection", "upgrade"}, {"Upgrade", "websocket"}}, .shutdown = shutdown});
    EXPECT_EQ(res.status, 503);
    EXPECT_TRUE(res.closes);
    EXPECT_EQ(proxy.stats()[0].failures, 0u) << "it was not the upstream's fault";
  });
}

TEST_P(ProxyUpgradeTest, TheShutdownEndsUpgradedConnections) {
  run_with(GetParam(), [] {
    ScriptedServer upstream(one_word);
    TestServer proxy(ReverseProxy({.upstreams = {upstream.url("")}, .upgrades = {"echo"}}));
    RawClient client(proxy.address());
    client.send(kUpgrade);
    client.read_until([&] { return client.received().ends_with("here"); });
    EXPECT_TRUE(proxy.server().shutdown()) << "nothing had to be cut off";
    client.read_until_closed();
    EXPECT_TRUE(client.closed());
  });
}

TEST_P(ProxyUpgradeTest, AnUpgradedConnectionOnWhichNothingMovesIsClosed) {
  run_with(GetParam(), [] {
    ScriptedServer upstream(one_word);
    TestServer proxy(
        ReverseProxy({.upstreams = {upstream.url("")}, .upgrades = {"echo"}, .upgrade_idle_timeout = 20ms}));
    RawClient client(proxy.address());
    client.send(kUpgrade);
    client.read_until_closed();
    EXPECT_TRUE(client.closed());
    EXPECT_TRUE(client.received().ends_with("here"));
  });
}

}  // namespace
}  // namespace tuza::http::testing
