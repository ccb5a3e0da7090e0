// How long a connection lasts: number of requests, age, room for others, and clients that take their responses slowly.
#include <gtest/gtest.h>
#include <tuza/http/router.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/sched/time/sleep.h>

#include <array>
#include <stdexcept>
#include <string>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;
using namespace std::chrono_literals;

class ConnectionLimitsTest : public WithProcs {};
TUZA_WITH_PROCS(ConnectionLimitsTest);

std::vector<Response> get_five(const ServerOptions& options) {
  TestServer server(hello_router(), options);
  RawClient client(server.address());
  std::string requests;
  for (int i = 0; i < 5; ++i) requests += get("/");
  client.send(requests);
  client.read_until([&] { return parse_responses(client.received(), false).size() == 5; });
  return parse_responses(client.received(), client.closed());
}

TEST_P(ConnectionLimitsTest, TheLastRequestIsAnnounced) {
  run_with(GetParam(), [] {
    const auto limited = get_five({.requests_per_connection_max = 3});
    ASSERT_EQ(limited.size(), 3u);
    EXPECT_EQ(limited[1].header("connection"), "");
    EXPECT_EQ(limited[2].header("connection"), "close");
    EXPECT_EQ(limited[2].body, "Hello, World!");
    EXPECT_EQ(get_five({.requests_per_connection_max = 0}).size(), 5u);
    EXPECT_EQ(get_five({.requests_per_connection_max = 1}).size(), 1u);
  });
}

// The client's address stays the same for all requests of the connection.
TEST_P(ConnectionLimitsTest, BehindAProxyTheClientIsTheOneThatItNames) {
  run_with(GetParam(), [] {
    Router router;
    router.handle("GET /", [](Request& req, ResponseWriter& res) { res.text(std::string(req.remote())); });
    TestServer server(std::move(router), {.proxy_protocol = net::ProxyProtocol::kRequired,
                                          .proxies = {net::Network::parse("127.0.0.0/8").value()}});
    RawClient client(server.address());
    client.send("PROXY TCP6 2001:db8::7 2001:db8::a 54102 443\r\n" + get("/") + get("/"));
    const std::vector<Response> all = client.read_responses(2);
    ASSERT_EQ(all.size(), 2u);
    for (const Response& one : all) EXPECT_EQ(one.body, "[2001:db8::7]:54102");
    RawClient direct(server.address());
    direct.send(get("/"));
    direct.read_until_closed();
    EXPECT_TRUE(parse_responses(direct.received(), true).empty());
    tuza::testing::yield_until([&] { return server.server().stats().connections.bad_proxy_headers == 1; });
  });
}

TEST(ConnectionLimits, AProxyProtocolNeedsProxies) {
  EXPECT_THROW(
      http::Server([](Request&, ResponseWriter&) {}, {.proxy_protocol = net::ProxyProtocol::kRequired}),
      std::invalid_argument);
}

TEST_P(ConnectionLimitsTest, AnOldConnectionEndsWithItsNextResponse) {
  run_with(GetParam(), [] {
    TestServer server(hello_router(), {.connection_age_max = 50ms});
    RawClient client(server.address());
    for (int i = 0; i < 10'000 && !client.closed(); ++i) {
      client.send(get("/"));
      const std::vector<Response> all = client.read_responses(static_cast<std::size_t>(i) + 1);
      if (all.back().header("connection") != "close") {
        sleep_for(5ms);
        continue;
      }
      client.read_until_closed();
      EXPECT_TRUE(all.back().complete);
      EXPECT_TRUE(client.closed());
      return;
    }
    FAIL() << "it never ended";
  });
}

TEST_P(ConnectionLimitsTest, AnIdleClientMakesRoomAndItsRequestIsNotLost) {
  run_with(GetParam(), [] {
    TestServer server(hello_router(), {.max_connections = 1});
    RawClient idle(server.address());
    idle.send(get("/"));
    ASSERT_EQ(idle.read_responses(1).size(), 1u);
    EXPECT_EQ(fetch(server.address(), get("/")).body, "Hello, World!");
    idle.read_until_closed();
    EXPECT_TRUE(idle.closed());
    EXPECT_EQ(server.server().stats().idle_timeouts, 0u);
  });
}

// A handler that writes until it fails, or 64 MiB; a client that takes a piece every few milliseconds.
struct Slow {
  Result<void> written;
  std::size_t received = 0;
};
Slow take_slowly(const ServerOptions& options, std::size_t piece_bytes, std::chrono::milliseconds pause) {
  constexpr std::size_t kAll = 64 << 20;
  Slow slow;
  WaitGroup returned;
  returned.add(1);
  Router router;
  router.handle("GET /{$}", [&](Request&, ResponseWriter& res) {
    const std::string piece(1 << 20, 'x');
    for (std::size_t sent = 0; sent < kAll && (slow.written = res.write(piece)); sent += piece.size()) {
    }
    returned.done();
  });
  TestServer server(std::move(router), options);
  RawClient client(server.address());
  client.send(get("/"));
  std::string into(piece_bytes, 0);
  for (;;) {
    std::size_t got = 0;
    while (got < piece_bytes) {
      const auto n = client.conn().read(std::as_writable_bytes(std::span(into).subspan(got)));
      if (!n || *n == 0) break;
      got += *n;
    }
    slow.received += got;
    if (got < piece_bytes || slow.received >= kAll) break;
    sleep_for(pause);
  }
  returned.wait();
  return slow;
}

TEST_P(ConnectionLimitsTest, AClientThatTakesLessThanTheMinimumRateIsCutOff) {
  run_with(GetParam(), [] {
    // Each wait is short; all of them together are not. At this rate, a piece pays for a microsecond.
    const Slow slow = take_slowly(
        {.write_timeout = 500ms, .response_rate_min_bytes_per_second = 4'000'000'000}, 64 << 10, 5ms);
    EXPECT_FALSE(slow.written);
    EXPECT_LT(slow.received, std::size_t{64} << 20);
  });
}

TEST_P(ConnectionLimitsTest, AClientThatTakesMoreMayTakeLongerThanTheTimeout) {
  run_with(GetParam(), [] {
    // All 64 pauses are longer than the timeout; each byte pays for a second. On a busy machine a single wait may be longer,
    // too, but hardly at every timeout.
    Result<void> written = std::unexpected(Error(Errc::kTimeout, "write"));
    for (auto timeout = 500ms; !written && timeout <= 8s; timeout *= 2) {
      written = take_slowly({.write_timeout = timeout, .response_rate_min_bytes_per_second = 1}, 1 << 20,
                            timeout / 40)
                    .written;
    }
    EXPECT_TRUE(written);
  });
}

}  // namespace
}  // namespace tuza::http::testing
