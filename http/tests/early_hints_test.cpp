// Interim responses (1xx): from a handler, to a caller of the client, and through the reverse proxy.
#include <gtest/gtest.h>
#include <tuza/http/reverse_proxy.h>
#include <tuza/http/testing.h>
#include <tuza/http/testing_server.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/time/fake_clock.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::FakeClock;
using tuza::testing::run_with;
using tuza::testing::WithProcs;

class EarlyHintsTest : public WithProcs {};
TUZA_WITH_PROCS(EarlyHintsTest);

constexpr std::string_view kCss = "</app.css>; rel=preload; as=style";
constexpr std::string_view kInterim =
    "HTTP/1.1 103 Early Hints\r\nLink: </app.css>; rel=preload; as=style\r\n\r\n";

void hint(Request&, ResponseWriter& res) {
  if (!res.early_hints(kCss)) return;
  res.text("page");
}

// "103 </app.css>...|200 page"
std::string shown(const std::vector<Response>& responses) {
  std::string text;
  for (const Response& one : responses) {
    if (!text.empty()) text += "|";
    text += std::to_string(one.status) + " " + (one.status < 200 ? one.header("link") : one.body);
  }
  return text;
}

std::string answers_to(const std::string& address, std::string_view request, std::size_t finals = 1) {
  RawClient client(address);
  client.send(request);
  (void)client.read_responses(finals);
  return shown(parse_responses(client.received(), client.closed()));
}

const std::string kHintAndPage = "103 " + std::string(kCss) + "|200 page";

TEST_P(EarlyHintsTest, ArriveWhileTheHandlerStillWorks) {
  run_with(GetParam(), [] {
    Chan<int> seen(1);
    Server server([&](Request& req, ResponseWriter& res) {
      EXPECT_TRUE(res.early_hints(kCss));
      (void)seen.recv(req.context());
      res.text("page");
    });
    RawClient client(server.dial().value());
    client.send(get("/"));
    client.read_until([&] { return client.received() == kInterim; });
    ASSERT_EQ(client.received(), kInterim);
    (void)seen.send(1);
    const std::vector<Response> got = client.read_responses(1);
    EXPECT_EQ(got.at(0).body, "page");
    EXPECT_EQ(got.at(0).header("link"), kCss) << "for those that do not know 103";
  });
}

TEST_P(EarlyHintsTest, ComeBehindTheAnswersToEarlierRequests) {
  run_with(GetParam(), [] {
    TestServer server([](Request& req, ResponseWriter& res) {
      if (req.path() == "/first") return res.text("first");
      hint(req, res);
    });
    EXPECT_EQ(answers_to(server.address(), get("/first") + get("/") + get("/first"), 3),
              "200 first|" + kHintAndPage + "|200 first");
    EXPECT_EQ(answers_to(server.address(), "HEAD / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
              "103 " + std::string(kCss) + "|200 ");
  });
}

TEST_P(EarlyHintsTest, AreNotForHttp10) {
  run_with(GetParam(), [] {
    TestServer server(hint);
    EXPECT_EQ(answers_to(server.address(), "GET / HTTP/1.0\r\n\r\n"), "200 page");
    EXPECT_EQ(fetch(server.address(), "GET / HTTP/1.0\r\n\r\n").header("link"), kCss);
  });
}

TEST_P(EarlyHintsTest, ABodyIsAskedForBehindThem) {
  run_with(GetParam(), [] {
    TestServer server([](Request& req, ResponseWriter& res) {
      EXPECT_TRUE(res.early_hints(kCss));
      res.text(req.body().value_or("-"));
    });
    RawClient client(server.address());
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
    client.read_until([&] { return client.received().contains("100 Continue\r\n\r\n"); });
    EXPECT_EQ(client.received(), std::string(kInterim) + "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("body");
    EXPECT_EQ(client.read_responses(1).at(0).body, "body");
  });
}

TEST(EarlyHintsCallTest, ShowInTheBareCall) {
  const CallResult res = call(hint, "GET /");
  ASSERT_EQ(res.interim.size(), 1u);
  EXPECT_EQ(res.interim[0].status, 103);
  EXPECT_EQ(res.interim[0].headers, (HeaderFields{{"Link", std::string(kCss)}}));
  EXPECT_EQ(res.header("Link"), kCss);
  EXPECT_EQ(res.body, "page");

  const auto fails_with = [](auto handler) { return call(handler, "GET /").exception != nullptr; };
  EXPECT_TRUE(fails_with([](Request&, ResponseWriter& late) {
    late.text("page");
    (void)late.early_hints(kCss);
  }));
  EXPECT_TRUE(fails_with([](Request&, ResponseWriter& bad) { (void)bad.early_hints("x\r\nA: b"); }));
  const CallResult left = call(hint, "GET /", {.client_reads = 0});
  EXPECT_TRUE(left.interim.empty());
}

// -- The client

TEST_P(EarlyHintsTest, ACallerOfTheClientSeesThem) {
  run_with(GetParam(), [] {
    ScriptedServer server([](net::Conn& conn, int) {
      while (!ScriptedServer::read_request(conn).empty()) {
        (void)conn.write_all("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" +
                             std::string(kInterim) + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage");
      }
    });
    Client client;
    for (int round = 0; round < 2; ++round) {
      std::string seen;
      ClientRequest request(Method::kGet, server.url());
      request.on_interim([&](int status, const ReceivedHeaders& headers) {
        seen += std::to_string(status) + " " + std::string(headers.find("link").value_or("-")) + ";";
      });
      EXPECT_EQ(client.send(kNoContext, request)->body(), "page");
      EXPECT_EQ(seen, "102 -;103 " + std::string(kCss) + ";");
    }
    EXPECT_EQ(client.stats().dialled, 1u);
  });
}

TEST_P(EarlyHintsTest, OnlyContinueAsksForTheBody) {
  run_with(GetParam(), [] {
    std::atomic<bool> early = false;
    ScriptedServer server([&](net::Conn& conn, int) {
      early = !ScriptedServer::read_request(conn).ends_with("\r\n\r\n");
      (void)conn.write_all(kInterim);
      std::array<char, 4> body{};
      conn.set_read_deadline(net::time_after_now(50ms));
      early = early || conn.read(std::span(body));
      (void)conn.write_all("HTTP/1.1 100 Continue\r\n\r\n");
      conn.set_read_deadline(net::time_after_now(20s));
      (void)conn.read_full(std::as_writable_bytes(std::span(body)));
      (void)conn.write_all("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n" +
                           std::string(body.data(), body.size()));
    });
    Client client({.continue_timeout = 20s});
    ClientRequest request(Method::kPost, server.url());
    request.set_body("body").expect_continue();
    EXPECT_EQ(client.send(kNoContext, request)->body(), "body");
    EXPECT_FALSE(early);
  });
}

// Also while a goroutine still sends the body, which belongs to the caller.
TEST_P(EarlyHintsTest, WhatTheFunctionThrowsEndsTheCall) {
  run_with(GetParam(), [] {
    Server server([](Request& req, ResponseWriter& res) {
      if (!res.early_hints(kCss)) return;
      if (const auto body = req.body()) res.text("never");
    });
    for (const bool beside : {false, true}) {
      std::size_t asked = 0;
      {
        ClientRequest request(Method::kPost, server.url());
        if (beside) {
          request.set_body_source([&asked](std::span<std::byte> into) -> Result<std::size_t> {
            ++asked;
            return into.size();
          });
          request.keep_sending();
        }
        request.on_interim([](int, const ReceivedHeaders&) { throw std::runtime_error("enough"); });
        EXPECT_THROW((void)server.client().send(kNoContext, request), std::runtime_error);
      }
      EXPECT_EQ(server.client().stats().open, 0u);
    }
    EXPECT_EQ(server.close(), "");
  });
}

// -- The reverse proxy

TEST_P(EarlyHintsTest, PassThroughTheProxyWithoutTheFieldsOfAConnection) {
  run_with(GetParam(), [] {
    ScriptedServer upstream(
        "HTTP/1.1 103 Early Hints\r\nLink: </app.css>; rel=preload; as=style\r\nConnection: "
        "X-Private\r\nX-Private: 1\r\n\r\n"
        "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage");
    TestServer proxy(ReverseProxy({.upstreams = {upstream.url("")}}));
    RawClient client(proxy.address());
    client.send(get("/"));
    const std::vector<Response> got = client.read_responses(1);
    EXPECT_TRUE(client.received().starts_with(std::string(kInterim) +
                                              "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\n"))
        << client.received();
    EXPECT_FALSE(got.at(0).has("link")) << "it was the upstream's to repeat it";
    EXPECT_EQ(answers_to(proxy.address(), "GET / HTTP/1.0\r\n\r\n"), "200 page");
  });
}

TEST_P(EarlyHintsTest, PassThroughTheProxyWhileTheBodyGoesTheOtherWay) {
  run_with(GetParam(), [] {
    Server upstream(
        [](Request& req, ResponseWriter& res) {
          EXPECT_TRUE(res.early_hints(kCss));
          const Result<std::string_view> body = req.body();
          if (body) res.text(std::to_string(body->size()));
        },
        {.socket = true});
    TestServer proxy(ReverseProxy({.upstreams = {"http://" + upstream.address()}}));
    RawClient client(proxy.address());
    client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    client.read_until([&] { return client.received().contains("103 Early"); });
    client.send("3\r\nyou\r\n0\r\n\r\n");
    (void)client.read_responses(1);
    EXPECT_EQ(shown(parse_responses(client.received(), client.closed())),
              "103 " + std::string(kCss) + "|200 8");
  });
}

// One that has hinted and died is no reason to give up: hints are no answer yet.
TEST_P(EarlyHintsTest, AnotherUpstreamAnswersInTheEnd) {
  run_with(GetParam(), [] {
    ScriptedServer dies{std::string(kInterim)};
    ScriptedServer dies_too{std::string(kInterim)};
    TestServer lives(hint);
    ReverseProxy proxy({.upstreams = {dies.url(""), dies_too.url(""), "http://" + lives.address()}});
    TestServer front(proxy);
    const std::string seen = answers_to(front.address(), get("/"));
    EXPECT_TRUE(seen.ends_with(kHintAndPage)) << seen;
  });
}

// A client that does not read holds up its own request only: the upstream is not to blame for an answer that is not taken.
TEST_P(EarlyHintsTest, AClientThatTakesNoneCostsNoUpstream) {
  run_with(GetParam(), [] {
    FakeClock clock;
    const std::string large(30'000, 'x');
    Server upstream([&](Request& req, ResponseWriter& res) {
      for (int i = 0; i < 4; ++i) {
        if (!res.early_hints(large)) return;
      }
      sleep_for(500ms);
      hint(req, res);
    });
    ReverseProxyOptions options{.upstreams = {upstream.url("")}, .failures_max = 1};
    options.client.dial = [&](const Context&, const Url&) { return upstream.dial(); };
    options.client.head_timeout = 1s;
    const ReverseProxy proxy(options);
    Server front(proxy, {.leak_check = false});
    RawClient client(front.dial().value());
    client.send(get("/"));
    sleep_for(5s);
    client.read_until([&] {
      return client.received().contains("\r\n\r\nHTTP/1.1 200") || client.received().contains(" 504 ");
    });
    EXPECT_EQ(proxy.stats().at(0).failures, 0u);
    EXPECT_FALSE(proxy.stats().at(0).left_out);
  });
}

}  // namespace
}  // namespace tuza::http::testing
