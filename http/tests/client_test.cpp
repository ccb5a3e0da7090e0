// The client against real servers: ours, and one that says whatever a test wants.
#include <gtest/gtest.h>
#include <tuza/http/client.h>
#include <tuza/http/router.h>
#include <tuza/http/tests/client_testing.h>
#include <tuza/netpoll/tests/fake_resolver.h>
#include <tuza/sched/sync/chan.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class ClientTest : public WithProcs {};
TUZA_WITH_PROCS(ClientTest);

// What is left open settles a moment after the last byte has been read on the other side.
void expect_idle(const Client& client, std::size_t idle) {
  for (int i = 0; i < 2'000 && client.stats().open != idle; ++i) sleep_for(1ms);
  EXPECT_EQ(client.stats().open, idle);
  EXPECT_EQ(client.stats().idle, idle);
  EXPECT_EQ(client.stats().waiting, 0u);
}

// Of the head, or else of the body.
Error error_of(Result<ClientResponse>& res) {
  if (!res) return res.error();
  const Result<std::string> body = res->body();
  return body ? Error(Errc::kOther, "none") : body.error();
}

TEST_P(ClientTest, GetsWhatTheServerSends) {
  run_with(GetParam(), [] {
    Router router;
    router.handle("GET /items/{id}", [](Request& req, ResponseWriter& res) {
      res.set_header("X-Agent", req.header("User-Agent").value_or("-"));
      res.set_header("X-Host", req.host());
      res.set_header("X-Mine", req.header("X-Mine").value_or("-"));
      res.send("text/plain", "item " + std::string(*req.path_value("id")) + " " + std::string(req.query()));
    });
    TestServer server(std::move(router));
    Client client;
    for (int i = 0; i < 3; ++i) {
      ClientRequest request(Method::kGet, url_of(server, "/items/7?a=b#c"));
      request.set_header("X-Mine", "1").set_header("x-mine", "2");
      Result<ClientResponse> res = client.send(kNoContext, request);
      ASSERT_TRUE(res) << res.error().message();
      EXPECT_EQ(res->status(), 200);
      EXPECT_EQ(res->reason(), "OK");
      EXPECT_EQ(res->header("x-agent"), "Tuza");
      EXPECT_EQ(res->header("X-Host"), server.address());
      EXPECT_EQ(res->header("X-Mine"), "2");
      EXPECT_EQ(res->header("X-None"), std::nullopt);
      EXPECT_EQ(res->content_length(), 10u);
      EXPECT_EQ(res->body(), "item 7 a=b");
      EXPECT_EQ(res->status(), 200) << "the head stays when the connection has gone back";
    }
    EXPECT_EQ(client.stats().dialled, 1u);
    EXPECT_EQ(client.get(kNoContext, url_of(server, "/none"))->status(), 404);
    EXPECT_EQ(client.head(kNoContext, url_of(server, "/items/1"))->body(), "");
    expect_idle(client, 1);
  });
}

TEST_P(ClientTest, ReadsEveryKindOfBody) {
  run_with(GetParam(), [] {
    const std::string large(300'000, 'x');
    Router router;
    router.handle("GET /chunks", [&](Request&, ResponseWriter& res) {
      for (int i = 0; i < 3; ++i) {
        (void)res.write(large.substr(0, 100'000));
        (void)res.flush();
      }
      res.add_trailer("X-Sum", "3");
    });
    router.handle("GET /length", [&](Request&, ResponseWriter& res) { res.send("text/plain", large); });
    router.handle("GET /none", [](Request&, ResponseWriter& res) { res.status(204); });
    router.handle("GET /not-modified", [](Request&, ResponseWriter& res) { res.status(304); });
    TestServer server(std::move(router));
    ScriptedServer closing("HTTP/1.0 200 OK\r\n\r\n" + large);
    Client client;
    for (const std::string& url : {url_of(server, "/chunks"), url_of(server, "/length"), closing.url()}) {
      Result<ClientResponse> whole = client.get(kNoContext, url);
      ASSERT_TRUE(whole) << whole.error().message();
      EXPECT_EQ(whole->body(), large) << url;
      Result<ClientResponse> pieces = client.get(kNoContext, url);
      std::string text;
      std::array<char, 777> piece{};
      for (auto n = pieces->read(piece); n.value() > 0; n = pieces->read(piece))
        text.append(piece.data(), *n);
      EXPECT_EQ(text, large) << url;
      EXPECT_EQ(pieces->trailers().find("X-Sum"),
                url.ends_with("/chunks") ? std::optional("3") : std::nullopt);
    }
    EXPECT_EQ(client.get(kNoContext, url_of(server, "/none"))->body(), "");
    EXPECT_EQ(client.get(kNoContext, url_of(server, "/not-modified"))->status(), 304);
    const auto small = client.get(kNoContext, url_of(server, "/length"))->body(1000);
    ASSERT_FALSE(small);
    EXPECT_TRUE(small.error().is(Errc::kBadMessage)) << small.error().message();
    EXPECT_FALSE(client.get(kNoContext, url_of(server, "/chunks"))->body(299'999));
    EXPECT_TRUE(client.get(kNoContext, url_of(server, "/chunks"))->body(300'000));
    expect_idle(client, 1);
  });
}

TEST_P(ClientTest, SendsEveryKindOfBody) {
  run_with(GetParam(), [] {
    TestServer server(echo_router());
    Client client;
    const std::string url = url_of(server, "/echo"), large(1'000'000, 'y');
    EXPECT_EQ(client.post(kNoContext, url, "text/plain", "small")->body(), "small");
    EXPECT_EQ(client.post(kNoContext, url, "text/plain", large)->body(), large);
    EXPECT_EQ(client.post(kNoContext, url, "text/plain", "")->header("X-Length"), "0");
    EXPECT_EQ(client.send(kNoContext, ClientRequest(Method::kPost, url))->header("X-Length"), "0");
    EXPECT_EQ(client.send(kNoContext, ClientRequest(Method::kDelete, url))->header("X-Length"), "-");
    for (const bool known : {false, true}) {
      std::size_t left = large.size();
      ClientRequest request(Method::kPut, url);
      request.set_body_source(
          [&](std::span<std::byte> into) -> Result<std::size_t> {
            const std::size_t n = std::min({into.size(), left, std::size_t{5'000}});
            std::fill_n(into.begin(), n, std::byte{'y'});
            left -= n;
            if (left == 0 && n > 0) request.add_trailer("X-Sum", "all");
            return n;
          },
          known ? std::optional(large.size()) : std::nullopt);
      Result<ClientResponse> res = client.send(kNoContext, request);
      ASSERT_TRUE(res) << res.error().message();
      EXPECT_EQ(res->header("X-Method"), "PUT");
      EXPECT_EQ(res->header("X-Length"), known ? "1000000" : "-");
      EXPECT_EQ(res->header("X-Trailer"), known ? "-" : "all");
      EXPECT_EQ(res->body(), large);
    }
    for (const std::size_t size : {std::size_t{0}, std::size_t{10}, large.size()}) {
      ClientRequest asks(Method::kPost, url);
      asks.set_body(large.substr(0, size), "a/b").expect_continue();
      Result<ClientResponse> res = client.send(kNoContext, asks);
      ASSERT_TRUE(res) << res.error().message();
      EXPECT_EQ(res->header("X-Type"), "a/b");
      EXPECT_EQ(res->body(), large.substr(0, size));
    }
    EXPECT_EQ(client.stats().dialled, 1u);
    expect_idle(client, 1);
  });
}

TEST(ClientRequestTest, FieldsMayBeCopiedFromTheRequestItself) {
  ClientRequest request(Method::kGet, "http://a/");
  for (int i = 0; i < 100; ++i) {
    const std::string value(20 + static_cast<std::size_t>(i), 'v');
    request.set_header("X-Of", value);
    request.add_header("X-Copy", request.header("X-Of").value());
    EXPECT_EQ(request.header("X-Copy"), value);
    const HeaderField last = *std::next(request.headers().begin());
    request.set_header(last.name, last.value);
    EXPECT_EQ(request.header("X-Copy"), value);
    request.set_header("X-Copy", request.header("X-Of").value()).remove_header("X-Copy");
    EXPECT_EQ(request.header("X-Of"), value);
    EXPECT_EQ(request.header("X-Copy"), std::nullopt);
  }
}

// Servers and what is in front of them may take different ones of two Host fields, or of a malformed one.
TEST(ClientRequestTest, HasOneHostAtMostAndAWellFormedOne) {
  ClientRequest request(Method::kGet, "http://h/");
  for (const char* host : {"", " ", "a b", "a,b", ":80", "a:b", "a/b", "u@a", "http://a", "[::1", "a\xff"}) {
    EXPECT_THROW(request.set_header("Host", host), std::invalid_argument) << host;
    EXPECT_THROW(request.add_header("hOST", host), std::invalid_argument) << host;
  }
  EXPECT_EQ(request.header("Host"), std::nullopt);
  for (const char* host : {"A.example:81", "[::1]:80", "10.0.0.1", " a "}) request.set_header("Host", host);
  EXPECT_EQ(request.header("Host"), "a");
  EXPECT_THROW(request.add_header("host", "a"), std::invalid_argument);
  EXPECT_THROW(request.set_header("Host", ""), std::invalid_argument);
  EXPECT_EQ(request.headers().find("Host"), "a");
  request.remove_header("Host").add_header("Host", "b");
  EXPECT_EQ(request.header("Host"), "b");
}

// A server that answers before it has read the body, reads no more of it, and waits for the client.
TEST_P(ClientTest, TakesAnAnswerThatComesBeforeTheBodyWasSent) {
  run_with(GetParam(), [] {
    ScriptedServer server([](net::Conn& conn, int) {
      if (ScriptedServer::read_request(conn).empty()) return;
      (void)conn.write_all("HTTP/1.1 413 No\r\nContent-Length: 4\r\n\r\nmuch");
      std::array<std::byte, 4096> piece;
      while (conn.read(piece).value_or(0) > 0) sleep_for(1ms);  // slower than any client sends
    });
    Client client;
    for (const bool asks : {false, true}) {
      ClientRequest endless(Method::kPost, server.url());
      endless.set_body_source([](std::span<std::byte> into) -> Result<std::size_t> { return into.size(); });
      if (asks) endless.expect_continue();
      Result<ClientResponse> res = client.send(kNoContext, endless);
      ASSERT_TRUE(res) << res.error().message();
      EXPECT_EQ(res->status(), 413);
      EXPECT_EQ(res->body(), "much");
    }
    expect_idle(client, 0);
  });
}

TEST_P(ClientTest, EndsWithTheErrorOfABodysSource) {
  run_with(GetParam(), [] {
    TestServer server(echo_router());
    Client client;
    int calls = 0;
    ClientRequest fails(Method::kPost, url_of(server, "/echo"));
    fails.set_body_source([&](std::span<std::byte>) -> Result<std::size_t> {
      if (++calls == 1) return 10;
      return std::unexpected(Error(Errc::kOther, "read", "the disk is broken"));
    });
    const Result<ClientResponse> failed = client.send(kNoContext, fails);
    ASSERT_FALSE(failed);
    EXPECT_TRUE(failed.error().message().contains("the disk is broken")) << failed.error().message();
    ClientRequest throws(Method::kPost, url_of(server, "/echo"));
    throws.set_body_source(
        [](std::span<std::byte>) -> Result<std::size_t> { throw std::runtime_error("x"); });
    EXPECT_THROW((void)client.send(kNoContext, throws), std::runtime_error);
    ClientRequest short_of(Method::kPost, url_of(server, "/echo"));
    short_of.set_body_source([](std::span<std::byte>) -> Result<std::size_t> { return 0; }, 5);
    EXPECT_TRUE(client.send(kNoContext, short_of).error().is(Errc::kEndOfStream));
    ClientRequest boasts(Method::kPost, url_of(server, "/echo"));
    boasts.set_body_source([](std::span<std::byte> into) -> Result<std::size_t> { return into.size() + 1; },
                           50);
    const Result<ClientResponse> overrun = client.send(kNoContext, boasts);
    ASSERT_FALSE(overrun);
    EXPECT_TRUE(overrun.error().message().contains("more than it had room for")) << overrun.error().message();
    expect_idle(client, 0);
  });
}

// -- Kept connections

// Answers the first request of each connection, and closes at the next one without a word.
void answer_once(net::Conn& conn, int) {
  if (ScriptedServer::read_request(conn).empty()) return;
  (void)conn.write_all("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  (void)ScriptedServer::read_request(conn);
}

TEST_P(ClientTest, RepeatsOnlyWhatMayBeRepeatedOnAConnectionThatIsGone) {
  run_with(GetParam(), [] {
    ScriptedServer server(answer_once);
    Client client;
    const auto ask = [&](Method method, bool key, std::uint64_t repeated) {
      client.close_idle();
      ASSERT_EQ(client.get(kNoContext, server.url())->body(), "ok");
      const std::uint64_t before = client.stats().repeated;
      ClientRequest request(method, server.url());
      if (key) request.set_header("Idempotency-Key", "1");
      if (method != Method::kGet) request.set_body("body");
      const Result<ClientResponse> res = client.send(kNoContext, request);
      EXPECT_EQ(res.has_value(), repeated == 1) << name(method);
      if (!res) {
        EXPECT_TRUE(res.error().is(Errc::kEndOfStream)) << res.error().message();
      }
      EXPECT_EQ(client.stats().repeated - before, repeated) << name(method);
    };
    ask(Method::kGet, false, 1);
    ask(Method::kPut, false, 1);
    ask(Method::kDelete, false, 1);
    ask(Method::kPost, false, 0);
    ask(Method::kPatch, false, 0);
    ask(Method::kPost, true, 1);
    // A new connection that is closed is an error, and no reason to go on.
    ScriptedServer dead([](net::Conn& conn, int) { (void)ScriptedServer::read_request(conn); });
    EXPECT_TRUE(client.get(kNoContext, dead.url()).error().is(Errc::kEndOfStream));
    EXPECT_EQ(dead.connections(), 1);
  });
}

TEST_P(ClientTest, UsesNoConnectionThatHasEndedOrSaysSomethingUnasked) {
  run_with(GetParam(), [] {
    Chan<bool> done(100);
    const auto say_more = [&](std::string_view more) {
      return [&done, more](net::Conn& conn, int) {
        if (ScriptedServer::read_request(conn).empty()) return;
        (void)conn.write_all("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        sleep_for(5ms);  // it has gone back by then
        (void)conn.write_all(more);
        (void)conn.close_write();
        done.send(true);
        (void)ScriptedServer::read_request(conn);
      };
    };
    constexpr std::string_view kEvil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
    for (int round = 0; round < 6; ++round) {
      const bool idempotent = round % 2 == 0;
      ScriptedServer server(say_more(round < 2 ? "" : round < 4 ? kEvil : "x"));
      Client client;
      for (int i = 0; i < 3; ++i) {
        // POST would not be repeated.
        Result<ClientResponse> res = idempotent ? client.get(kNoContext, server.url())
                                                : client.post(kNoContext, server.url(), "a/b", "x");
        ASSERT_TRUE(res) << res.error().message();
        EXPECT_EQ(res->body(), "ok");
        (void)done.recv();
        sleep_for(2ms);
      }
      EXPECT_EQ(client.stats().repeated, 0u);
      EXPECT_EQ(server.connections(), 3);
    }
  });
}

TEST_P(ClientTest, KeepsNoConnectionWhoseResponseHasMoreThanItSays) {
  run_with(GetParam(), [] {
    ScriptedServer server([](net::Conn& conn, int) {
      while (!ScriptedServer::read_request(conn).empty()) {
        (void)conn.write_all(
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
      }
    });
    Client client;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(client.get(kNoContext, server.url())->body(), "ok");
    EXPECT_EQ(server.connections(), 3);
    expect_idle(client, 0);
  });
}

TEST_P(ClientTest, ClosesAConnectionWhoseBodyNobodyReads) {
  run_with(GetParam(), [] {
    TestServer large(
        [](Request&, ResponseWriter& res) { res.send("text/plain", std::string(1'000'000, 'x')); });
    ScriptedServer small([](net::Conn& conn, int) {
      while (!ScriptedServer::read_request(conn).empty())
        (void)conn.write_all("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    Client client;
    ASSERT_TRUE(client.get(kNoContext, url_of(large)));
    expect_idle(client, 0);
    ASSERT_TRUE(client.get(kNoContext, small.url()));
    expect_idle(client, 1);  // its body had arrived with the head
  });
}

// -- Limits of time

TEST_P(ClientTest, TheTimeToDialIncludesTheResolver) {
  const auto gate = std::make_shared<net::testing::ResolverGate>();
  const net::testing::FakeResolver names({{"silent.test", {.addresses = {"127.0.0.1"}, .gate = gate}}});
  run_with(GetParam(), [&] {
    Client hasty({.dial_timeout = 1ms});
    EXPECT_TRUE(hasty.get(kNoContext, "http://silent.test/").error().timeout());
    Client patient;
    const auto limited = with_timeout(kNoContext, 1ms);
    EXPECT_TRUE(patient.get(limited.ctx(), "http://silent.test/").error().timeout());
    gate->open();
  });
}

TEST_P(ClientTest, EndsWithItsTimeouts) {
  run_with(GetParam(), [] {
    ScriptedServer silent([](net::Conn& conn, int) {
      if (ScriptedServer::read_request(conn).starts_with("GET /closes")) return;
      (void)ScriptedServer::read_request(conn);
    });
    ScriptedServer slow([](net::Conn& conn, int) {
      if (ScriptedServer::read_request(conn).empty()) return;
      (void)conn.write_all("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nsome");
      (void)ScriptedServer::read_request(conn);
    });
    const auto error = [](Result<ClientResponse> res) { return error_of(res); };
    Client never({.dial_timeout = 0ms, .head_timeout = 0ms, .timeout = 0ms});
    EXPECT_TRUE(error(never.get(kNoContext, silent.url("/closes"))).is(Errc::kEndOfStream));
    Client head({.head_timeout = 20ms});
    EXPECT_TRUE(error(head.get(kNoContext, silent.url())).timeout());
    EXPECT_TRUE(error(head.post(kNoContext, silent.url(), "a/b", std::string(200'000, 'x'))).timeout());
    Client whole({.timeout = 30ms});
    EXPECT_TRUE(error(whole.get(kNoContext, silent.url())).timeout());
    EXPECT_TRUE(error(whole.get(kNoContext, slow.url())).timeout());
    Client client;
    for (const ScriptedServer* server : {&silent, &slow}) {
      const auto limited = with_timeout(kNoContext, 20ms);
      EXPECT_TRUE(error(client.get(limited.ctx(), server->url())).timeout());
      const auto ended = with_cancel(kNoContext);
      WaitGroup group;
      group.go([&] {
        sleep_for(10ms);
        ended.cancel();
      });
      EXPECT_TRUE(error(client.get(ended.ctx(), server->url())).cancelled());
      group.wait();
      EXPECT_TRUE(error(client.get(ended.ctx(), server->url())).cancelled());
    }
    for (const Client* each : {&head, &whole, &client}) expect_idle(*each, 0);
  });
}

TEST_P(ClientTest, SendsABodyWhoseServerSaysNothingAboutIt) {
  run_with(GetParam(), [] {
    ScriptedServer server([](net::Conn& conn, int) {
      const std::string head = ScriptedServer::read_request(conn);
      std::string rest = head.substr(head.find("\r\n\r\n") + 4);
      EXPECT_EQ(rest, "");
      std::array<char, 16> piece{};
      const auto n = conn.read(piece);
      (void)conn.write_all("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n" +
                           std::string(piece.data(), n.value_or(0)));
    });
    Client client({.continue_timeout = 10ms});
    ClientRequest request(Method::kPost, server.url());
    request.set_body("body").expect_continue();
    EXPECT_EQ(client.send(kNoContext, request)->body(), "body");
  });
}

TEST_P(ClientTest, SkipsInterimHeadsButNotWithoutEnd) {
  run_with(GetParam(), [] {
    const std::string hint = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    const auto many = [&](int count) {
      std::string text;
      for (int i = 0; i < count; ++i) text += hint;
      return text + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    };
    Client client;
    ScriptedServer some(many(16)), more(many(17));
    EXPECT_EQ(client.get(kNoContext, some.url())->body(), "ok");
    EXPECT_TRUE(client.get(kNoContext, more.url()).error().is(Errc::kBadMessage));
  });
}

// -- Bad input

TEST_P(ClientTest, NamesWhatAServerDoesWrong) {
  run_with(GetParam(), [] {
    Client client({.head_bytes_max = 1000, .headers_max = 5});
    constexpr std::pair<std::string_view, Errc> kCases[] = {
        {"", Errc::kEndOfStream},
        {"HTTP/1.1 200 OK\r\n", Errc::kEndOfStream},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", Errc::kEndOfStream},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", Errc::kEndOfStream},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", Errc::kEndOfStream},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", Errc::kBadMessage},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!\r\n", Errc::kBadMessage},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n", Errc::kBadMessage},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", Errc::kBadMessage},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
         Errc::kBadMessage},
        {"HTTP/1.1 200 OK\r\nA: 1\r\nB: 1\r\nC: 1\r\nD: 1\r\nE: 1\r\nF: 1\r\n\r\n", Errc::kBadMessage},
        {"SSH-2.0-OpenSSH_9.2\r\n", Errc::kBadMessage},
        {"\x15\x03\x01\r\n\r\n", Errc::kBadMessage},
        {"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n", Errc::kBadMessage}};
    for (const auto& [bytes, code] : kCases) {
      ScriptedServer server{std::string(bytes)};
      Result<ClientResponse> res = client.get(kNoContext, server.url());
      const Error error = error_of(res);
      EXPECT_TRUE(error.is(code)) << bytes << ": " << error.message();
      EXPECT_TRUE(error.message().starts_with("GET " + server.url() + ": ")) << error.message();
      if (res) {
        EXPECT_TRUE(error_of(res).is(code)) << "the error stays";
      }
    }
    ScriptedServer large("HTTP/1.1 200 OK\r\nA: " + std::string(2000, 'a') + "\r\n\r\n");
    EXPECT_TRUE(client.get(kNoContext, large.url()).error().is(Errc::kBadMessage));
    expect_idle(client, 0);
  });
}

TEST_P(ClientTest, NamesWhatAProgramAsksForWrongly) {
  run_with(GetParam(), [] {
    Client client;
    EXPECT_TRUE(client.get(kNoContext, "ftp://h/").error().is(Errc::kBadAddress));
    ClientRequest request(Method::kGet, "http://h/");
    EXPECT_THROW(request.set_header("A", "b\r\nC: d"), std::invalid_argument);
    EXPECT_THROW(request.set_header("A b", "c"), std::invalid_argument);
    EXPECT_THROW(request.set_header("content-length", "1"), std::invalid_argument);
    EXPECT_THROW(request.add_trailer("Authorization", "1"), std::invalid_argument);
    EXPECT_THROW(Client({.headers_max = 257}), std::invalid_argument);
    const std::string url = closed_url("/x");
    const Result<ClientResponse> refused = client.get(kNoContext, url);
    EXPECT_TRUE(refused.error().is(std::errc::connection_refused));
    EXPECT_TRUE(refused.error().message().starts_with("GET " + url + ": dial")) << refused.error().message();
    expect_idle(client, 0);
  });
}

}  // namespace
}  // namespace tuza::http::testing
