// The reverse proxy between a client and upstreams: what is passed on, and what each of them may do in the middle of it.
#include <gtest/gtest.h>
#include <tuza/http/middleware/real_ip.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/http/testing.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/sched/sync/semaphore.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class ReverseProxyTest : public WithProcs {};
TUZA_WITH_PROCS(ReverseProxyTest);

// Answers what has come: the request line, and each field in a line.
void show(Request& req, ResponseWriter& res) {
  const Result<std::string_view> body = req.body();
  if (!body) return;
  std::string shown = std::string(req.method_name()) + " " + std::string(req.target()) + "\n";
  for (const auto& [name, value] : req.headers()) shown.append(name).append(": ").append(value).append("\n");
  shown.append("\n").append(*body);
  for (const auto& [name, value] : req.trailers()) shown.append(name).append(": ").append(value).append("\n");
  res.send("text/plain", shown);
}

std::string through(const TestServer& proxy, std::string_view request) {
  return fetch(proxy.address(), request).body;
}

TEST_P(ReverseProxyTest, PassesTheRequestOnAndNotWhatIsOfTheConnection) {
  run_with(GetParam(), [] {
    TestServer upstream(show);
    TestServer proxy(ReverseProxy({.upstreams = {url_of(upstream, "")}, .via = ""}));
    const std::string shown =
        through(proxy,
                "PUT /a/../b%zz?{x}=%7B HTTP/1.1\r\nHost: www.example\r\nX-Mine: 1\r\nCookie: a=b\r\n"
                "Connection: X-Private, keep-alive, X-Forwarded-Proto\r\nX-Private: 1\r\nKeep-Alive: 5\r\n"
                "TE: trailers\r\nProxy-Authorization: x\r\nUpgrade: h2c\r\nX-Forwarded-For: 6.6.6.6\r\n"
                "X-Forwarded-Port: 1\r\nForwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nX_Forwarded_For: "
                "6.6.6.6\r\nx_real-ip: 6.6.6.6\r\n"
                "Content-Length: 4\r\n\r\nbody");
    EXPECT_EQ(
        shown,
        "PUT /a/../b%zz?{x}=%7B\nX-Mine: 1\nCookie: a=b\nHost: www.example\nX-Forwarded-For: 127.0.0.1\n"
        "X-Forwarded-Proto: http\nX-Forwarded-Host: www.example\nContent-Length: 4\n\nbody");
  });
}

TEST_P(ReverseProxyTest, OptionsAndHooksDecideWhatUpstreamsSee) {
  run_with(GetParam(), [] {
    TestServer upstream(show);
    ReverseProxyOptions options{.upstreams = {url_of(upstream, "")},
                                .forwarded = ForwardedFields::kRfc7239,
                                .via = "",
                                .keep_host = false};
    options.rewrite = [](const Request& in, ClientRequest& out) {
      Url url = *out.url();
      url.target = "/v2" + url.target;
      out.set_url(std::move(url))
          .set_header("X-Added", in.header("X-Mine").value_or("-"))
          .remove_header("X-Mine");
    };
    options.on_response = [](const ClientResponse& in, ResponseWriter& out) {
      out.set_header("X-Status", std::to_string(in.status()));
      out.remove_header("Content-Type");
    };
    Router router;
    router.mount("/api", ReverseProxy(options));
    TestServer proxy(with(std::move(router), real_ip({.trusted = {"127.0.0.1"}})));
    const Response res =
        fetch(proxy.address(),
              "GET /api/x?q HTTP/1.1\r\nHost: www.example\r\nX-Mine: 1\r\nConnection: X-Added\r\n"
              "X-Forwarded-For: 2001:db8::1\r\nX-Forwarded-Proto: https\r\n\r\n");
    EXPECT_EQ(res.body,
              "GET /v2/x?q\nHost: " + upstream.address() +
                  "\nForwarded: for=\"[2001:db8::1]\";proto=\"https\";host=\"www.example\"\nX-Added: 1\n\n");
    EXPECT_EQ(res.header("x-status"), "200");
    EXPECT_FALSE(res.has("content-type"));
  });
}

TEST_P(ReverseProxyTest, ChecksWhatAMiddlewareSaysOfTheClient) {
  run_with(GetParam(), [] {
    TestServer upstream(show);
    const ReverseProxy to_upstream({.upstreams = {url_of(upstream, "")}});
    for (const bool evil : {false, true}) {
      const std::string host = evil ? "www.example\r\nX-Admin: 1" : "www.example";
      TestServer proxy([&](Request& req, ResponseWriter& res) {
        req.set(kForwarded, {.proto = "https", .host = host});
        to_upstream(req, res);
      });
      const Response res = fetch(proxy.address(), get("/"));
      EXPECT_EQ(res.status, evil ? 500 : 200);
      EXPECT_EQ(res.body.contains("X-Forwarded-Host: www.example\n"), !evil) << res.body;
    }
  });
}

// Answers by the path that is asked for.
const std::map<std::string, std::string, std::less<>> kAnswers{
    {"/teapot",
     "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 418 I'm a teapot\r\nServer: theirs\r\nDate: "
     "theirs\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nConnection: keep-alive, X-Private\r\nX-Private: 1\r\n"
     "Keep-Alive: 5\r\nContent-Length: 3\r\n\r\ntea"},
    {"/length", "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n"},
    {"/chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"},
    {"/204", "HTTP/1.1 204 No Content\r\nETag: \"x\"\r\n\r\n"},
    {"/304", "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n"},
    {"/trailers",
     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX-Sum: 1\r\nContent-Length: "
     "9\r\n\r\n"}};

TEST_P(ReverseProxyTest, PassesTheAnswerBack) {
  run_with(GetParam(), [] {
    ScriptedServer upstream([](net::Conn& conn, int) {
      for (std::string got; !(got = ScriptedServer::read_request(conn)).empty();) {
        const std::size_t path = got.find('/');
        const auto answer = kAnswers.find(std::string_view(got).substr(path, got.find(' ', path) - path));
        if (answer == kAnswers.end() || !conn.write_all(answer->second)) return;
      }
    });
    TestServer proxy(ReverseProxy({.upstreams = {upstream.url("")}}));
    const Response teapot = fetch(proxy.address(), get("/teapot"));
    EXPECT_EQ(teapot.status, 418);
    EXPECT_EQ(teapot.body, "tea");
    EXPECT_EQ(teapot.header("server"), "theirs");
    EXPECT_EQ(teapot.header("date"), "theirs");
    EXPECT_EQ(teapot.headers.count("set-cookie"), 2u);
    EXPECT_EQ(teapot.header("content-length"), "3");
    for (const char* gone : {"x-private", "keep-alive", "link", "connection"})
      EXPECT_FALSE(teapot.has(gone)) << gone;

    const auto head_of = [&](std::string_view path) {
      return fetch(proxy.address(), "HEAD " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n", true);
    };
    EXPECT_EQ(head_of("/length").header("content-length"), "1234");
    EXPECT_FALSE(head_of("/chunked").has("content-length"));
    for (const char* bodiless : {"/204", "/304"}) {
      const Response res = fetch(proxy.address(), get(bodiless));
      EXPECT_EQ(res.header("etag"), "\"x\"");
      EXPECT_TRUE(res.complete);
    }
    RawClient client(proxy.address());
    client.send(get("/trailers"));
    client.read_until(
        [&] { return client.received().ends_with("\r\n\r\n") && client.received().contains("\r\n0\r\n"); });
    EXPECT_TRUE(client.received().ends_with("2\r\nab\r\n0\r\nX-Sum: 1\r\n\r\n")) << client.received();
    EXPECT_EQ(upstream.connections(), 1) << "it is kept";
  });
}

// Two of them would be refused by browsers (CORS), or understood by each client in its own way.
TEST_P(ReverseProxyTest, AFieldThatMiddlewareHasSetStaysTheOnlyOne) {
  run_with(GetParam(), [] {
    ScriptedServer upstream([](net::Conn& conn, int) {
      while (!ScriptedServer::read_request(conn).empty()) {
        (void)conn.write_all(
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-type: text/x\r\nDate: theirs\r\nServer: "
            "theirs\r\n"
            "Access-Control-Allow-Origin: *\r\nX-Frame-Options: SAMEORIGIN\r\nCache-Control: max-age=9\r\n"
            "Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nVary: A\r\nX-Theirs: 1\r\nX-Theirs: 2\r\n\r\nhi");
      }
    });
    constexpr std::array kOnce{
        "access-control-allow-origin", "content-type", "x-frame-options", "cache-control", "date", "server"};
    Middleware sets = [=](Handler next) -> Handler {
      return [=, next = std::move(next)](Request& req, ResponseWriter& res) {
        for (const char* name : kOnce) res.set_header(name, "ours");
        res.set_header("Set-Cookie", "c=3");
        res.set_header("Vary", "B");
        next(req, res);
      };
    };
    TestServer proxy(with(ReverseProxy({.upstreams = {upstream.url("")}}), std::move(sets)));
    const Response res = fetch(proxy.address(), get("/"));
    EXPECT_EQ(res.body, "hi");
    for (const char* name : kOnce) EXPECT_EQ(res.headers.count(name) == 1 ? res.header(name) : "", "ours");
    EXPECT_EQ(res.headers.count("set-cookie"), 3u);
    EXPECT_EQ(res.headers.count("vary"), 2u);
    EXPECT_EQ(res.headers.count("x-theirs"), 2u);
  });
}

TEST_P(ReverseProxyTest, BodiesOfAllSizesBothWays) {
  run_with(GetParam(), [] {
    TestServer upstream(echo_router());
    TestServer proxy(ReverseProxy({.upstreams = {url_of(upstream, "")}, .repeatable_bytes_max = 1000}));
    Client client;
    for (const std::size_t size : {0uz, 1uz, 1000uz, 1001uz, 100'000uz, 3'000'000uz}) {
      std::string text(size, '.');
      for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i % 23);
      ClientRequest whole(Method::kPost, url_of(proxy, "/echo"));
      whole.set_body(text);
      Result<ClientResponse> res = client.send(kNoContext, whole);
      ASSERT_TRUE(res) << size;
      EXPECT_EQ(res->header("X-Length"), std::to_string(size));
      EXPECT_EQ(res->body(), text) << size;
      std::size_t at = 0;
      ClientRequest chunked(Method::kPost, url_of(proxy, "/echo"));
      chunked.set_body_source([&](std::span<std::byte> into) -> Result<std::size_t> {
        const std::size_t n = std::min({into.size(), size - at, 777uz});
        std::copy_n(std::as_bytes(std::span(text)).begin() + static_cast<std::ptrdiff_t>(at), n,
                    into.begin());
        at += n;
        return n;
      });
      chunked.add_trailer("X-Sum", "7");
      res = client.send(kNoContext, chunked);
      ASSERT_TRUE(res) << size;
      EXPECT_EQ(res->header("X-Length"), "-");
      EXPECT_EQ(res->header("X-Trailer"), "7");
      EXPECT_EQ(res->body(), text) << size;
    }
    EXPECT_EQ(client.stats().dialled, 1u) << "bodies that have ended before their answer end no connection";
  });
}

TEST_P(ReverseProxyTest, PassesEachPieceOnBeforeItWaitsForTheNext) {
  run_with(GetParam(), [] {
    Semaphore next(0);
    TestServer upstream([&](Request& req, ResponseWriter& res) {
      res.set_header("Content-Type", "text/event-stream");
      (void)res.flush();
      for (const char* event : {"data: 1\n\n", "data: 2\n\n"}) {
        if (!next.acquire(req.context()) || !res.write(event) || !res.flush()) return;
      }
    });
    TestServer proxy(ReverseProxy({.upstreams = {url_of(upstream, "")}}));
    Client client;
    Result<ClientResponse> res = client.get(kNoContext, url_of(proxy));
    ASSERT_TRUE(res) << "the head comes first";
    std::array<char, 64> piece;
    for (const std::string_view event : {"data: 1\n\n", "data: 2\n\n"}) {
      next.release();
      const Result<std::size_t> n = res->read(std::span(piece));
      ASSERT_TRUE(n);
      EXPECT_EQ(std::string_view(piece.data(), *n), event);
    }
    EXPECT_EQ(res->read(std::span(piece)), 0u);
  });
}

TEST_P(ReverseProxyTest, AStreamOfEventsEndsWithTheShutdown) {
  run_with(GetParam(), [] {
    TestServer upstream([](Request& req, ResponseWriter& res) {
      res.set_header("Content-Type", "text/event-stream; charset=utf-8");
      if (!res.write("data: 1\n\n") || !res.flush()) return;
      req.context().wait();
    });
    TestServer proxy(ReverseProxy({.upstreams = {url_of(upstream, "")}}), {.shutdown_timeout = 1h});
    Client client;
    Result<ClientResponse> res = client.get(kNoContext, url_of(proxy));
    ASSERT_TRUE(res);
    std::array<char, 64> piece;
    EXPECT_EQ(res->read(std::span(piece)), 9u);
    EXPECT_TRUE(proxy.server().shutdown());
    EXPECT_EQ(res->read(std::span(piece)), 0u) << "a whole response";
  });
}

// Not by the proxy's own context of the stream, which stands in for theirs.
TEST_P(ReverseProxyTest, AStreamOfEventsEndsWithTheContextOfMiddleware) {
  run_with(GetParam(), [] {
    TestServer upstream([](Request& req, ResponseWriter& res) {
      res.set_header("Content-Type", "text/event-stream");
      if (!res.write("data: 1\n\n") || !res.flush()) return;
      req.context().wait();
    });
    CancellableContext limited;
    ReverseProxyOptions options{.upstreams = {url_of(upstream, "")}};
    options.client.middleware = {[&](const Context& ctx, ClientRequest& request, const ClientNext& next) {
      limited = with_cancel(ctx);
      return next(limited.ctx(), request);
    }};
    TestServer proxy{ReverseProxy(options)};
    Client client;
    Result<ClientResponse> res = client.get(kNoContext, url_of(proxy));
    ASSERT_TRUE(res);
    std::array<char, 64> piece;
    EXPECT_EQ(res->read(std::span(piece)), 9u);
    limited.cancel();
    EXPECT_FALSE(res->read(std::span(piece))) << "it breaks off";
  });
}

TEST_P(ReverseProxyTest, BodiesPassEachOther) {
  run_with(GetParam(), [] {
    TestServer upstream([](Request& req, ResponseWriter& res) {
      std::array<std::byte, 100> piece;
      for (;;) {
        const Result<std::size_t> n = req.read_body(piece);
        if (!n || *n == 0) return;
        if (!res.write({reinterpret_cast<const char*>(piece.data()), *n}) || !res.flush()) return;
      }
    });
    ReverseProxy handler({.upstreams = {url_of(upstream, "")}, .repeatable_bytes_max = 0});
    TestServer proxy(handler);
    for (const auto& [chunked, asks_first] :
         {std::pair(true, false), {false, false}, {true, true}, {false, true}}) {
      Client client;
      Semaphore next(1);
      int sent = 0;
      ClientRequest request(Method::kPost, url_of(proxy));
      if (asks_first) request.expect_continue();
      request.keep_sending().set_body_source(
          [&](const Context& ctx, std::span<std::byte> into) -> Result<std::size_t> {
            if (sent == 30) return 0;
            if (Result<void> got = next.acquire(ctx); !got) return std::unexpected(got.error());
            std::fill_n(into.begin(), 100, static_cast<std::byte>('a' + sent++));
            return 100;
          },
          chunked ? std::nullopt : std::optional<std::uint64_t>(3000));
      Result<ClientResponse> res = client.send(kNoContext, request);
      ASSERT_TRUE(res) << res.error().message();
      std::string got;
      std::array<char, 100> piece;
      for (;;) {
        const Result<std::size_t> n = res->read(std::span(piece));
        ASSERT_TRUE(n) << n.error().message();
        if (*n == 0) break;
        got.append(piece.data(), *n);
        if (got.size() % 100 == 0) next.release();
      }
      ASSERT_EQ(got.size(), 3000u);
      for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], static_cast<char>('a' + i / 100));
    }
    EXPECT_EQ(handler.stats()[0].failures, 0u);
  });
}

TEST_P(ReverseProxyTest, AnUpstreamThatDoesNotAnswer) {
  run_with(GetParam(), [] {
    ScriptedServer dies("");
    ScriptedServer babbles("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n");
    ScriptedServer odd("HTTP/1.1 700 OK\r\nContent-Length: 0\r\n\r\n");
    ScriptedServer stops("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
    ScriptedServer switches("HTTP/1.1 101 Go On\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n");
    for (const std::string& url :
         {dies.url(""), babbles.url(""), odd.url(""), stops.url(""), switches.url(""), closed_url()}) {
      ReverseProxy handler({.upstreams = {url}});
      TestServer proxy(handler);
      const Response res = fetch(proxy.address(), get("/"));
      EXPECT_EQ(res.status, 502) << url;
      EXPECT_EQ(res.body, "Bad Gateway\n") << url;
      EXPECT_EQ(handler.stats()[0].failures, 1u);
      EXPECT_EQ(handler.stats()[0].active, 0u);
    }
    ScriptedServer silent([](net::Conn& conn, int) {
      ScriptedServer::read_request(conn);
      wait_for_end(conn);
    });
    ReverseProxyOptions options{.upstreams = {silent.url("")}, .client = {.head_timeout = 20ms}};
    options.on_failure = [](Request&, ResponseWriter& res, const ProxyFailure& failure) {
      res.text(503, std::to_string(failure.status) + " " + std::string(failure.upstream));
    };
    TestServer proxy((ReverseProxy(options)));
    const Response res = fetch(proxy.address(), get("/"));
    EXPECT_EQ(res.status, 503);
    EXPECT_EQ(res.body, "504 " + silent.url(""));
  });
}

TEST_P(ReverseProxyTest, AnAnswerThatBreaksOffDoesSoForTheClient) {
  run_with(GetParam(), [] {
    const std::string part(100'000, 'x');
    ScriptedServer length("HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + part);
    ScriptedServer chunks("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n186A0\r\n" + part + "\r\n");
    for (const std::string& url : {length.url(""), chunks.url("")}) {
      TestServer proxy(ReverseProxy({.upstreams = {url}}));
      Client client;
      Result<ClientResponse> res = client.get(kNoContext, url_of(proxy));
      ASSERT_TRUE(res);
      EXPECT_TRUE(res->body().error().is(Errc::kEndOfStream));
    }
  });
}

TEST_P(ReverseProxyTest, AnUpstreamMayAnswerBeforeItHasTheBody) {
  run_with(GetParam(), [] {
    ScriptedServer upstream("HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno");
    TestServer proxy(ReverseProxy({.upstreams = {upstream.url("")}}));
    RawClient client(proxy.address());
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n" + std::string(1000, 'x'));
    const std::vector<Response> got = client.read_responses(1);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].status, 401);
    EXPECT_EQ(got[0].body, "no");
  });
}

TEST_P(ReverseProxyTest, BadBodiesAreAnsweredHere) {
  run_with(GetParam(), [] {
    TestServer upstream(show);
    ReverseProxy handler({.upstreams = {url_of(upstream, "")}});
    TestServer proxy(handler, {.body_bytes_max = 100'000});
    EXPECT_EQ(fetch(proxy.address(), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n").status,
              413);
    const std::string chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    EXPECT_EQ(fetch(proxy.address(), chunked + "2\r\nabc\r\n").status, 400);
    EXPECT_EQ(fetch(proxy.address(), chunked + "30D40\r\n" + std::string(200'000, 'x')).status, 413);
    EXPECT_EQ(fetch(proxy.address(), "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").status, 400);
    EXPECT_EQ(handler.stats()[0].failures, 0u) << "it was not the upstream's fault";
  });
}

TEST_P(ReverseProxyTest, AClientThatGoesAwayTakesTheRequestWithIt) {
  run_with(GetParam(), [] {
    Semaphore begun(0), ended(0);
    TestServer upstream([&](Request& req, ResponseWriter& res) {
      if (req.path() == "/stream") {
        while (res.write(std::string(10'000, 'x'))) {
        }
      } else {
        begun.release();
        req.context().wait();
      }
      ended.release();
    });
    ReverseProxy handler({.upstreams = {url_of(upstream, "")}});
    TestServer proxy(handler);
    {
      RawClient client(proxy.address());
      client.send(get("/wait"));
      begun.acquire();
    }
    ended.acquire();
    {
      RawClient client(proxy.address());
      client.send(get("/wait"));
      begun.acquire();
      ASSERT_TRUE(client.conn().close_write());
      client.read_until_closed();
      EXPECT_TRUE(client.received().starts_with("HTTP/1.1 499 ")) << client.received();
      EXPECT_TRUE(client.received().contains("\r\nConnection: close\r\n")) << client.received();
    }
    ended.acquire();
    {
      RawClient client(proxy.address());
      client.send(get("/stream"));
      client.read_until([&] { return client.received().size() > 100'000; });
    }
    ended.acquire();
    const auto stats = [&] { return handler.stats()[0]; };
    while (stats().active > 0) sleep_for(1ms);  // until the proxy has seen it, too
    EXPECT_EQ(stats().failures, 0u);
    EXPECT_EQ(stats().client.open, stats().client.idle);
  });
}

TEST_P(ReverseProxyTest, AsksOverUnixSocketsToo) {
  run_with(GetParam(), [] {
    const std::string path = "/tmp/tuza-proxy-test." + std::to_string(::getpid());
    http::Server upstream((Handler(show)));
    ASSERT_TRUE(upstream.listen("unix:" + path));
    WaitGroup serving;
    serving.go([&] { (void)upstream.serve(); });
    {
      TestServer proxy(ReverseProxy({.upstreams = {"unix:" + path},
                                     .forwarded = ForwardedFields::kNone,
                                     .via = "",
                                     .keep_host = false}));
      EXPECT_EQ(through(proxy, get("/x")), "GET /x\nHost: localhost\n\n");
    }
    (void)upstream.shutdown();
    serving.wait();
  });
}

}  // namespace
}  // namespace tuza::http::testing
