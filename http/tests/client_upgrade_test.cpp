// What a client needs to pass requests on: upgrades, bodies that wait, URLs taken as they are.
#include <gtest/gtest.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/sched/sync/chan.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class ClientUpgradeTest : public WithProcs {};
TUZA_WITH_PROCS(ClientUpgradeTest);

constexpr std::string_view kSwitch =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";

std::string read_exactly(HijackedStream& stream, std::size_t size) {
  std::string got;
  std::array<std::byte, 64> piece;
  while (got.size() < size) {
    const Result<std::size_t> n =
        stream.read(std::span(piece).first(std::min(piece.size(), size - got.size())));
    if (!n || *n == 0) break;
    got.append(reinterpret_cast<const char*>(piece.data()), *n);
  }
  return got;
}

TEST_P(ClientUpgradeTest, TheConnectionIsTheCallersAfter101) {
  run_with(GetParam(), [] {
    AskedFor asked_for;
    ScriptedServer server([&](net::Conn& conn, int) {
      asked_for.add(ScriptedServer::read_request(conn));
      std::string first(kSwitch);
      first += "early ";  // of the protocol, with the head
      (void)conn.write_all(first);
      std::array<char, 64> piece;
      while (const auto n = conn.read(std::span(piece))) {
        if (*n == 0 || !conn.write_all(std::string_view(piece.data(), *n))) return;
      }
    });
    Client client({.head_timeout = 30s, .timeout = 30s});
    ClientRequest request(Method::kGet, server.url());
    request.set_upgrade("echo");
    {
      Result<ClientResponse> res = client.send(kNoContext, request);
      ASSERT_TRUE(res) << res.error().message();
      EXPECT_EQ(res->status(), 101);
      EXPECT_EQ(res->header("Upgrade"), "echo");
      const std::string asked = asked_for.take().at(0);
      EXPECT_TRUE(asked.contains("\r\nConnection: Upgrade\r\nUpgrade: echo\r\n")) << asked;
      Result<HijackedStream> stream = res->hijack();
      ASSERT_TRUE(stream) << stream.error().message();
      ASSERT_TRUE(stream->write("and late"));
      EXPECT_EQ(read_exactly(*stream, 14), "early and late");
      ASSERT_TRUE(stream->conn().close_write());
      EXPECT_EQ(read_exactly(*stream, 1), "") << "the server has closed";
      EXPECT_EQ(client.stats().open, 1u);
    }
    EXPECT_EQ(client.stats().open, 0u) << "no such connection is kept";
  });
}

// What follows the answer is of the new protocol.
TEST_P(ClientUpgradeTest, A101EndsABodyThatIsOnItsWay) {
  run_with(GetParam(), [] {
    constexpr std::size_t kMoreThanSocketsHold = 32 << 20;
    for (const bool as_text : {true, false}) {
      Chan<bool> answered(1);
      std::string received;
      std::size_t left = kMoreThanSocketsHold;
      {
        ScriptedServer server([&](net::Conn& conn, int) {
          received = ScriptedServer::read_request(conn);
          if (!conn.write_all(kSwitch)) return;
          (void)answered.recv();
          std::string piece(1 << 20, '\0');
          for (auto n = conn.read(std::span(piece)); n && *n > 0; n = conn.read(std::span(piece))) {
            received.append(piece, 0, *n);
          }
        });
        Client client({.head_timeout = 30s, .timeout = 30s});
        ClientRequest request(Method::kPost, server.url());
        request.set_upgrade("echo").keep_sending();
        if (as_text) {
          request.set_body(std::string(left, 'x'));
        } else {
          request.set_body_source(
              [&left](std::span<std::byte> into) -> Result<std::size_t> {
                const std::size_t n = std::min(into.size(), left);
                left -= n;
                return n;
              },
              left);
        }
        Result<ClientResponse> res = client.send(kNoContext, request);
        EXPECT_EQ(res->status(), 101);
        answered.send(true);
        EXPECT_TRUE(res->hijack()->write("of the protocol"));
      }
      EXPECT_TRUE(received.ends_with("of the protocol"));
      EXPECT_LT(received.size(), kMoreThanSocketsHold);
    }
  });
}

TEST_P(ClientUpgradeTest, AServerMayDeclineAndMayNotInsist) {
  run_with(GetParam(), [] {
    TestServer server(echo_router());
    Client client;
    ClientRequest request(Method::kGet, url_of(server, "/echo"));
    request.set_upgrade("echo");
    Result<ClientResponse> declined = client.send(kNoContext, request);
    ASSERT_TRUE(declined);
    EXPECT_EQ(declined->status(), 200);
    EXPECT_TRUE(declined->hijack().error().is(Errc::kBadMessage));
    EXPECT_EQ(declined->body(), "");
    EXPECT_EQ(client.stats().idle, 1u);

    ScriptedServer insists{std::string(kSwitch)};
    EXPECT_TRUE(client.get(kNoContext, insists.url()).error().is(Errc::kBadMessage));
    for (const char* asked : {"other", "echo2", "ech"}) {
      ClientRequest other(Method::kGet, insists.url());
      EXPECT_TRUE(client.send(kNoContext, other.set_upgrade(asked)).error().is(Errc::kBadMessage)) << asked;
    }
    ClientRequest one_of(Method::kGet, insists.url());
    EXPECT_EQ(client.send(kNoContext, one_of.set_upgrade("other, ECHO"))->status(), 101);
    EXPECT_THROW(ClientRequest(Method::kGet, "http://a/").set_upgrade("a\r\nb"), std::invalid_argument);
    EXPECT_THROW(ClientRequest(Method::kGet, "http://a/").set_header("upgrade", "a"), std::invalid_argument);
  });
}

TEST_P(ClientUpgradeTest, TheAnswerEndsASourceThatWaits) {
  run_with(GetParam(), [] {
    ScriptedServer server("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
    Client client;
    ClientRequest request(Method::kPost, server.url());
    bool begun = false;
    request.set_body_source([&](const Context& ctx, std::span<std::byte> into) -> Result<std::size_t> {
      if (!std::exchange(begun, true)) return into[0] = std::byte{'x'}, 1;
      ctx.wait();
      return std::unexpected(ctx.cause());
    });
    Result<ClientResponse> res = client.send(kNoContext, request);
    ASSERT_TRUE(res) << res.error().message();
    EXPECT_EQ(res->status(), 413);
    EXPECT_EQ(res->body(), "no");
  });
}

TEST_P(ClientUpgradeTest, SaysWhetherARequestWasSent) {
  run_with(GetParam(), [] {
    Client client;
    ClientRequest request(Method::kPost, closed_url());
    request.set_body("text");
    EXPECT_FALSE(client.send(kNoContext, request));
    EXPECT_FALSE(request.sent());
    ScriptedServer dies("");
    request.set_url(Url::parse(dies.url()).value());
    EXPECT_FALSE(client.send(kNoContext, request));
    EXPECT_TRUE(request.sent());
    request.set_url(Url::parse(closed_url()).value());
    EXPECT_FALSE(client.send(kNoContext, request));
    EXPECT_FALSE(request.sent());
  });
}

TEST_P(ClientUpgradeTest, TakesAUrlMadeByHandAsItIs) {
  run_with(GetParam(), [] {
    TestServer server([](Request& req, ResponseWriter& res) { res.text(req.target()); });
    Client client;
    Url url{.https = false, .authority = server.address(), .target = "/a/../b%zz?{\xc3\xbc}"};
    EXPECT_EQ(client.send(kNoContext, ClientRequest(Method::kGet, url))->body(), url.target);
    for (const char* target : {"", "a", "*", "/a b", "/a\r\nX: y", "/{", "/?a b", "/#a"}) {
      url.target = target;
      EXPECT_TRUE(client.send(kNoContext, ClientRequest(Method::kGet, url)).error().is(Errc::kBadAddress))
          << target;
    }
    url.target = "/";
    for (const char* authority : {"", ":80", "a b", "a\r\nX: y", "u@a", "a/b"}) {
      url.authority = authority;
      EXPECT_TRUE(client.send(kNoContext, ClientRequest(Method::kGet, url)).error().is(Errc::kBadAddress))
          << authority;
    }
  });
}

TEST_P(ClientUpgradeTest, RemovesFields) {
  run_with(GetParam(), [] {
    ClientRequest request(Method::kGet, "http://a/");
    request.add_header("A", "1").add_header("B", "2").add_header("a", "3").add_header("C", "4");
    request.remove_header("A");
    EXPECT_FALSE(request.header("a"));
    EXPECT_EQ(request.header("C"), "4");
    request.set_header("B", *request.header("C"));
    EXPECT_EQ(request.header("B"), "4");
  });
}

}  // namespace
}  // namespace tuza::http::testing
