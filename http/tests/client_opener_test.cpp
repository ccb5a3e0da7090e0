// Bodies that are made anew for each sending: redirects, lost connections and retries may send them again.
#include <gtest/gtest.h>
#include <tuza/http/client/middleware/retry.h>
#include <tuza/http/testing_upstreams.h>
#include <tuza/http/tests/client_testing.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class ClientOpenerTest : public WithProcs {};
TUZA_WITH_PROCS(ClientOpenerTest);

// Gives `text` in two pieces. What it captures cannot be copied: each sending has a source of its own.
ClientRequest::BodySource source_of(std::string text) {
  auto left = std::make_unique<std::string>(std::move(text));
  return [left = std::move(left)](const Context&, std::span<std::byte> into) -> Result<std::size_t> {
    const std::size_t n = std::min(into.size(), (left->size() + 1) / 2);
    std::memcpy(into.data(), left->data(), n);
    left->erase(0, n);
    return n;
  };
}

struct Opener {
  int opened = 0;
  ClientRequest request(Method method, std::string_view url, const std::string& text,
                        std::optional<std::uint64_t> length = std::nullopt) {
    ClientRequest made(method, url);
    made.set_body_opener(
        [this, text]() -> Result<ClientRequest::BodySource> {
          ++opened;
          return source_of(text);
        },
        length);
    return made;
  }
};

TEST_P(ClientOpenerTest, ARedirectSendsTheBodyAgain) {
  run_with(GetParam(), [] {
    Router router = echo_router();
    router.handle("/to/{status}", [](Request& req, ResponseWriter& res) {
      (void)req.body();
      res.set_header("Location", "/echo");
      res.status(req.path_value<int>("status"));
    });
    TestServer server(std::move(router));
    Client client;
    for (const auto length : {std::optional<std::uint64_t>(4), std::optional<std::uint64_t>()}) {
      Opener opener;
      ClientRequest request = opener.request(Method::kPost, url_of(server, "/to/307"), "body", length);
      Result<ClientResponse> res = client.send(kNoContext, request);
      ASSERT_TRUE(res) << res.error().message();
      EXPECT_EQ(res->header("X-Length"), length ? "4" : "-");
      EXPECT_EQ(res->body(), "body");
      EXPECT_EQ(opener.opened, 2);
    }
    // One that becomes a GET has no body.
    Opener opener;
    ClientRequest request = opener.request(Method::kPost, url_of(server, "/to/303"), "body");
    EXPECT_EQ(client.send(kNoContext, request)->header("X-Method"), "GET");
    EXPECT_EQ(opener.opened, 1);
  });
}

TEST_P(ClientOpenerTest, ALostConnectionSendsItAgain) {
  run_with(GetParam(), [] {
    // The first connection serves one request, and ends with the next one.
    ScriptedServer server([](net::Conn& conn, int number) {
      for (int i = 0; i < 2; ++i) {
        std::string got = ScriptedServer::read_request(conn);
        if (got.empty() || (number == 0 && i == 1)) return;
        std::array<char, 64> piece;
        while (!got.ends_with("body")) {
          const auto n = conn.read(std::span(piece));
          if (!n || *n == 0) return;
          got.append(piece.data(), *n);
        }
        (void)conn.write_all("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      }
    });
    Client client;
    for (int i = 0; i < 2; ++i) {
      Opener opener;
      ClientRequest request = opener.request(Method::kPut, server.url(), "body", 4);
      Result<ClientResponse> res = client.send(kNoContext, request);
      ASSERT_TRUE(res) << res.error().message();
      EXPECT_EQ(res->body(), "ok");
      EXPECT_EQ(opener.opened, i + 1);
    }
    EXPECT_EQ(client.stats().repeated, 1u);
  });
}

TEST_P(ClientOpenerTest, RetrySendsItAgain) {
  run_with(GetParam(), [] {
    std::atomic<int> asked = 0;
    FakeUpstreams upstreams;
    FakeUpstream& upstream = upstreams.add("http://a", [&](Request& req, ResponseWriter& res) {
      (void)req.body();
      res.text(asked++ == 0 ? 503 : 200, "answer");
    });
    Client client(upstreams.client_options({.middleware = {retry({.backoff = 1ms})}}));
    Opener opener;
    ClientRequest request = opener.request(Method::kPut, "http://a/", "body");
    EXPECT_EQ(client.send(kNoContext, request)->status(), 200);
    EXPECT_EQ(upstream.requests().back().body, "body");
    EXPECT_EQ(opener.opened, 2);
    // The source may still be read by the first sending.
    asked = 0;
    ClientRequest kept = opener.request(Method::kPut, "http://a/", "body");
    kept.keep_sending();
    EXPECT_EQ(client.send(kNoContext, kept)->status(), 503);
    EXPECT_EQ(opener.opened, 3);
  });
}

TEST_P(ClientOpenerTest, AnErrorOfTheOpenerIsThatOfTheCall) {
  run_with(GetParam(), [] {
    TestServer server(echo_router());
    Client client;
    ClientRequest request(Method::kPut, url_of(server, "/echo"));
    request.set_body_opener([]() -> Result<ClientRequest::BodySource> {
      return std::unexpected(Error(Errc::kOther, "open", "no such note"));
    });
    const Result<ClientResponse> res = client.send(kNoContext, request);
    ASSERT_FALSE(res);
    EXPECT_TRUE(res.error().message().contains("no such note")) << res.error().message();
    EXPECT_EQ(request.body(), std::nullopt);
    request.set_body("a text instead");
    EXPECT_EQ(client.send(kNoContext, request)->body(), "a text instead");
  });
}

}  // namespace
}  // namespace tuza::http::testing
