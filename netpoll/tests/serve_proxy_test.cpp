// A server behind proxies that speak the PROXY protocol: whom it believes, and who the client is then.
#include <tuza/netpoll/serve.h>
#include <tuza/netpoll/tests/netpoll_testing.h>

#include <unistd.h>

#include <array>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tuza::net::testing {
namespace {

class ServeProxyTest : public WithProcs {};
TUZA_WITH_PROCS(ServeProxyTest);

Network network(const char* text) { return Network::parse(text).value(); }

// Says who the client is, and echoes.
void name_client(Session& session) {
  if (session.conn().write_all(session.conn().remote_address().value_or("-") + "\n")) echo(session);
}

std::string read_line(Conn& conn) {
  std::string line;
  for (std::array<char, 1> one{};
       !line.ends_with('\n') && conn.read_full(std::as_writable_bytes(std::span(one)));)
    line += one[0];
  return line;
}

struct ProxiedServer {
  explicit ProxiedServer(ServeOptions options = {}, Listener listener = listen_on_loopback())
      : server(std::move(listener), &name_client, required(std::move(options))) {
    serving.go([this] { EXPECT_TRUE(server.serve()); });
  }
  ~ProxiedServer() {
    server.shutdown(Clock::now());
    serving.wait();
  }
  static ServeOptions required(ServeOptions options) {
    options.proxy_protocol = ProxyProtocol::kRequired;
    if (options.proxies.empty()) options.proxies = {network("127.0.0.0/8")};
    return options;
  }
  // The header is sent at once.
  Conn dial(std::string_view header) const {
    Conn conn = net::dial("tcp", server.address()).value();
    EXPECT_TRUE(conn.write_all(header));
    return conn;
  }

  Server server;
  WaitGroup serving;
};

std::string v1(const char* client) {
  return "PROXY TCP4 " + std::string(client) + " 192.0.2.10 54102 443\r\n";
}

TEST_P(ServeProxyTest, TheClientOfTheHeaderIsThePeer) {
  run_with(GetParam(), [] {
    const ProxiedServer running;
    Conn conn = running.dial(v1("203.0.113.7") + "hello");
    EXPECT_EQ(read_line(conn), "203.0.113.7:54102\n");
    EXPECT_EQ(read_some(conn), "hello");
    Conn check = running.dial("PROXY UNKNOWN\r\n");
    EXPECT_EQ(read_some(check), to_string(check.local_endpoint().value()) + "\n");
    EXPECT_EQ(running.server.stats().bad_proxy_headers, 0u);
  });
}

TEST_P(ServeProxyTest, OnlyProxiesMayConnect) {
  run_with(GetParam(), [] {
    const ProxiedServer running({.proxies = {network("10.0.0.0/8"), network("unix:")}});
    Conn conn = running.dial(v1("203.0.113.7"));
    EXPECT_EQ(read_to_end(conn).find("203"), std::string::npos);
    EXPECT_EQ(running.server.stats().not_from_proxy, 1u);
  });
}

TEST_P(ServeProxyTest, AProxyMayComeThroughAUnixSocket) {
  run_with(GetParam(), [] {
    const std::string path =
        std::filesystem::temp_directory_path() / ("tuza-proxy-" + std::to_string(getpid()));
    const ProxiedServer running({.proxies = {network("unix:")}}, listen("unix", path).value());
    Conn conn = net::dial("unix", path).value();
    ASSERT_TRUE(conn.write_all(v1("203.0.113.7")));
    EXPECT_EQ(read_some(conn), "203.0.113.7:54102\n");
  });
}

TEST_P(ServeProxyTest, WithoutAHeaderNobodyIsServed) {
  run_with(GetParam(), [] {
    const ProxiedServer running({.proxy_header_timeout = 50ms});
    Conn malformed = running.dial("GET / HTTP/1.1\r\n\r\n");
    EXPECT_EQ(read_to_end(malformed).find("127"), std::string::npos);
    Conn silent = running.dial("");
    EXPECT_EQ(read_to_end(silent), "");
    Conn half = running.dial("PROXY TCP4 203.0.113.7 ");
    EXPECT_EQ(read_to_end(half).find("203"), std::string::npos);
    Conn ended = running.dial("PROXY");
    ASSERT_TRUE(ended.close_write());
    EXPECT_EQ(read_to_end(ended), "");
    yield_until([&] { return running.server.stats().bad_proxy_headers == 4; });
  });
}

TEST_P(ServeProxyTest, TheLimitPerAddressCountsClientsNotProxies) {
  run_with(GetParam(), [] {
    const ProxiedServer running({.connections_per_address_max = 1});
    Conn first = running.dial(v1("203.0.113.7"));
    EXPECT_EQ(read_some(first), "203.0.113.7:54102\n");
    Conn other = running.dial(v1("203.0.113.8"));
    EXPECT_EQ(read_some(other), "203.0.113.8:54102\n");
    Conn second = running.dial(v1("203.0.113.7"));
    EXPECT_EQ(read_to_end(second).find("203"), std::string::npos);
    EXPECT_EQ(running.server.stats().over_address_max, 1u);
    // The proxy itself, and clients that it does not know, have no address that counts.
    std::vector<Conn> checks;
    for (int i = 0; i < 3; ++i) {
      checks.push_back(running.dial("PROXY UNKNOWN\r\n"));
      EXPECT_NE(read_some(checks.back()), "");
    }
    first.close();
    yield_until([&] { return running.server.connections() == 4; });
    Conn again = running.dial(v1("203.0.113.7"));
    EXPECT_EQ(read_some(again), "203.0.113.7:54102\n");
  });
}

TEST_P(ServeProxyTest, AConnectionWithoutAHeaderMakesRoom) {
  run_with(GetParam(), [] {
    const ProxiedServer running({.max_connections = 1, .proxy_header_timeout = 1h});
    Conn silent = running.dial("");  // what the server has not read at its close would be answered by a reset
    yield_until([&] { return running.server.connections() == 1; });
    Conn conn = running.dial(v1("203.0.113.7"));
    EXPECT_EQ(read_some(conn), "203.0.113.7:54102\n");
    EXPECT_EQ(read_to_end(silent), "");
    EXPECT_EQ(running.server.stats().made_room, 1u);
    EXPECT_EQ(running.server.stats().bad_proxy_headers, 0u);
  });
}

TEST_P(ServeProxyTest, ShutdownWaitsForNoHeader) {
  run_with(GetParam(), [] {
    Server server(listen_on_loopback(), &name_client, ProxiedServer::required({.proxy_header_timeout = 1h}));
    WaitGroup serving;
    serving.go([&] { EXPECT_TRUE(server.serve()); });
    Conn silent = net::dial("tcp", server.address()).value();
    yield_until([&] { return server.connections() == 1; });
    EXPECT_TRUE(server.shutdown(Clock::now() + 1h));
    serving.wait();
  });
}

TEST(ServeProxyOptions, NameTheProxies) {
  run_with(1, [] {
    EXPECT_THROW(Server(listen_on_loopback(), &name_client, {.proxy_protocol = ProxyProtocol::kRequired}),
                 std::invalid_argument);
  });
}

}  // namespace
}  // namespace tuza::net::testing
