// An upstream is left out for its own failures only, not for those of clients and of the proxy itself.
#include <gtest/gtest.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/http/testing_server.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/http/tests/long_body.h>
#include <tuza/sched/time/sleep.h>

#include <span>
#include <string>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class ProxyBlameTest : public WithProcs {};
TUZA_WITH_PROCS(ProxyBlameTest);

void read_for_ever(net::Conn& conn, int) {
  std::vector<char> scrap(64 << 10);
  while (conn.read(std::span(scrap)).value_or(0) > 0) {
  }
}

TEST_P(ProxyBlameTest, AClientWhoseBodyTakesLongerThanTheCallMayLast) {
  run_with(GetParam(), [] {
    ScriptedServer upstream(read_for_ever);
    const ReverseProxy proxying({.upstreams = {upstream.url("")}, .client = {.timeout = 50ms}});
    TestServer proxy(proxying);
    RawClient client(proxy.address());
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n" + std::string(1000, 'x'));
    EXPECT_EQ(client.read_responses(1).at(0).status, 408);
    EXPECT_EQ(proxying.stats()[0].failures, 0u);
  });
}

TEST_P(ProxyBlameTest, AClientThatDoesNotReadUntilTheTimeOfTheCallIsOver) {
  run_with(GetParam(), [] {
    constexpr std::size_t kBytes = 64 << 20;  // more than sockets hold
    ScriptedServer upstream([](net::Conn& conn, int) {
      ScriptedServer::read_request(conn);
      (void)conn.write_all("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kBytes) + "\r\n\r\n");
      for (std::size_t sent = 0; sent < kBytes && conn.write_all(long_body()); sent += long_body().size()) {
      }
    });
    const ReverseProxy proxying({.upstreams = {upstream.url("")}, .client = {.timeout = 1s}});
    TestServer proxy(proxying);
    RawClient client(proxy.address());
    client.send(get("/"));
    sleep_for(1200ms);
    client.read_until_closed();
    EXPECT_LT(client.received().size(), kBytes);
    EXPECT_EQ(proxying.stats()[0].failures, 0u);
  });
}

TEST_P(ProxyBlameTest, AnAnswerThatStopsInTheMiddleIsTheUpstreams) {
  run_with(GetParam(), [] {
    ScriptedServer upstream([](net::Conn& conn, int) {
      ScriptedServer::read_request(conn);
      (void)conn.write_all("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + std::string(70'000, 'x'));
      wait_for_end(conn);
    });
    const ReverseProxy proxying({.upstreams = {upstream.url("")}, .client = {.timeout = 300ms}});
    TestServer proxy(proxying);
    RawClient client(proxy.address());
    client.send(get("/"));
    client.read_until_closed();
    EXPECT_EQ(proxying.stats()[0].failures, 1u);
  });
}

TEST_P(ProxyBlameTest, AProxyThatMayOpenNoMoreConnections) {
  run_with(GetParam(), [] {
    ScriptedServer upstream([](net::Conn& conn, int) {
      ScriptedServer::read_request(conn);
      (void)conn.write_all("HTTP/1.1 101 OK\r\nUpgrade: echo\r\nConnection: upgrade\r\n\r\n");
      wait_for_end(conn);
    });
    const ReverseProxy proxying({.upstreams = {upstream.url("")},
                                 .upgrades = {"echo"},
                                 .client = {.connections_per_origin_max = 1, .timeout = 50ms}});
    TestServer proxy(proxying);
    RawClient tunnel(proxy.address());
    tunnel.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
    tunnel.read_until([&] { return tunnel.received().contains("\r\n\r\n"); });
    for (int i = 0; i < 4; ++i) EXPECT_EQ(fetch(proxy.address(), get("/")).status, 504);
    EXPECT_EQ(proxying.stats()[0].failures, 0u);
    EXPECT_FALSE(proxying.stats()[0].left_out);
  });
}

}  // namespace
}  // namespace tuza::http::testing
