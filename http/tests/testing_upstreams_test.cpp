// http::testing::FakeUpstreams: what the code under test gets, and what the test learns. And ClientOptions::dial_tls.
#include <gtest/gtest.h>
#include <tuza/http/router.h>
#include <tuza/http/testing_server.h>
#include <tuza/http/testing_upstreams.h>
#include <tuza/netpoll/tests/tls_testing.h>
#include <tuza/sched/go.h>
#include <tuza/sched/sync/semaphore.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/fake_clock.h>

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace tuza::http::testing {
namespace {

using namespace std::chrono_literals;
using tuza::testing::run_with;

void echo(Request& req, ResponseWriter& res) {
  const Result<std::string_view> body = req.body();
  if (body) res.text(std::string(req.host()) + " " + std::string(*body));
}

TEST(FakeUpstreamsTest, AnswerByHostAndNoteWhatTheyWereAsked) {
  run_with(2, [] {
    FakeUpstreams upstreams;
    FakeUpstream& plain = upstreams.add("http://plain.example", echo);
    FakeUpstream& secure = upstreams.add("https://secure.example:8443", echo);
    Client client(upstreams.client_options());
    const Context ctx;
    ClientRequest request(Method::kPut, "http://plain.example/items/7?full=1");
    request.set_header("X-Mark", "1").set_body("text", "a/b");
    EXPECT_EQ(client.send(ctx, request)->body(), "plain.example text");
    for (int i = 0; i < 3; ++i)
      EXPECT_EQ(client.get(ctx, "https://secure.example:8443/")->body(), "secure.example:8443 ");
    ASSERT_EQ(plain.requests().size(), 1u);
    const SeenRequest seen = plain.requests()[0];
    EXPECT_EQ(seen.method, Method::kPut);
    EXPECT_EQ(seen.target, "/items/7?full=1");
    EXPECT_EQ(seen.header("x-mark"), "1");
    EXPECT_EQ(seen.header("X-None"), std::nullopt);
    EXPECT_EQ(seen.body, "text");
    EXPECT_EQ(secure.requests().size(), 3u);
    EXPECT_EQ(secure.dials(), 1u) << "it is kept";
    EXPECT_EQ(upstreams.close(), "");
  });
}

// Whoever reads a body piece by piece does so here, too.
TEST(FakeUpstreamsTest, NoteBodiesHoweverTheyAreRead) {
  run_with(2, [] {
    FakeUpstreams upstreams;
    FakeUpstream& pieces = upstreams.add("http://pieces", [](Request& req, ResponseWriter& res) {
      std::array<std::byte, 7> piece;
      std::size_t bytes = 0;
      for (auto n = req.read_body(piece); n && *n > 0; n = req.read_body(piece)) bytes += *n;
      res.text(std::to_string(bytes));
    });
    FakeUpstream& nothing =
        upstreams.add("http://nothing", [](Request&, ResponseWriter& res) { res.status(204); });
    Client client(upstreams.client_options());
    const Context ctx;
    for (const std::size_t size : {std::size_t{0}, std::size_t{10'000}, std::size_t{200'000}}) {
      const std::string body(size, 'x');
      EXPECT_EQ(client.post(ctx, "http://pieces/", "a/b", body)->body(), std::to_string(size));
      EXPECT_TRUE(pieces.requests().back().body == body) << size;
      EXPECT_EQ(client.post(ctx, "http://nothing/", "a/b", body)->status(), 204);
      EXPECT_TRUE(nothing.requests().back().body == (size > 65'536 ? "" : body)) << size;
    }
    ClientRequest chunked(Method::kPost, "http://pieces/");
    int left = 5;
    chunked.set_body_source([&](std::span<std::byte> into) -> Result<std::size_t> {
      into[0] = std::byte{'y'};
      return left-- > 0 ? 1 : 0;
    });
    EXPECT_EQ(client.send(ctx, chunked)->body(), "5");
    EXPECT_EQ(pieces.requests().back().body, "yyyyy");
  });
}

TEST(FakeUpstreamsTest, FailAsOrdered) {
  run_with(2, [] {
    FakeUpstreams upstreams;
    FakeUpstream& upstream = upstreams.add("http://a", [](Request& req, ResponseWriter& res) {
      res.set_header("X-Path", req.path());
      if (req.path() == "/none") return res.status(204);
      res.text("0123456789");
    });
    Client client(upstreams.client_options());
    const Context ctx;
    const auto post = [&](std::string_view url) { return client.post(ctx, url, "a/b", "text"); };

    upstream.refuse_dials(2);
    for (int i = 0; i < 2; ++i)
      EXPECT_TRUE(client.get(ctx, "http://a/").error().is(std::errc::connection_refused));
    upstream.refuse_dials(1, std::make_error_code(std::errc::network_unreachable));
    EXPECT_TRUE(client.get(ctx, "http://a/").error().is(std::errc::network_unreachable));
    EXPECT_EQ(upstream.requests().size(), 0u);
    EXPECT_EQ(upstream.dials(), 3u);
    EXPECT_EQ(client.get(ctx, "http://a/")->body(), "0123456789");

    upstream.drop_requests(2);
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(post("http://a/").error().is(Errc::kEndOfStream));
    EXPECT_EQ(post("http://a/")->body(), "0123456789");

    upstream.break_off(4);
    upstream.break_off(100);
    upstream.break_off(0);
    for (const std::string_view part : {"0123", "012345678", ""}) {
      Result<ClientResponse> res = post("http://a/part");
      ASSERT_TRUE(res) << res.error().message();
      EXPECT_EQ(res->header("X-Path"), "/part");
      EXPECT_EQ(res->content_length(), 10u);
      std::string got;
      std::array<char, 3> piece;
      Result<std::size_t> n = 1;
      while ((n = res->read(piece)) && *n > 0) got.append(piece.data(), *n);
      ASSERT_FALSE(n);
      EXPECT_TRUE(n.error().is(Errc::kEndOfStream)) << n.error().message();
      EXPECT_EQ(got, part);
    }
    upstream.break_off(0);
    EXPECT_TRUE(post("http://a/none").error().is(Errc::kEndOfStream));
    EXPECT_EQ(upstream.requests().size(), 8u);
    EXPECT_EQ(upstream.requests().back().body, "text");
  });
}

TEST(FakeUpstreamsTest, AnswerSlowlyOnTheFakeClock) {
  run_with(2, [] {
    tuza::testing::FakeClock clock;
    FakeUpstreams upstreams;
    FakeUpstream& upstream = upstreams.add("http://a", echo);
    Client client(upstreams.client_options({.head_timeout = 1min}));
    upstream.delay(59s);
    EXPECT_EQ(client.get({}, "http://a/")->body(), "a ");
    EXPECT_EQ(clock.elapsed(), 59s);
    upstream.delay(2h);
    EXPECT_TRUE(client.get({}, "http://a/").error().timeout());
    EXPECT_EQ(clock.elapsed(), 119s);
    upstream.delay(0s);
    EXPECT_EQ(client.get({}, "http://a/")->body(), "a ");
    EXPECT_EQ(clock.elapsed(), 119s);
  });
}

TEST(FakeUpstreamsTest, FailTheTestForAHostThatNobodyHasAdded) {
  run_with(2, [] {
    FakeUpstreams upstreams;
    upstreams.add("http://a", echo);
    Client client(upstreams.client_options());
    for (const char* url : {"http://b/", "https://a/x"}) {
      const Result<ClientResponse> res = client.get({}, url);
      ASSERT_FALSE(res);
      EXPECT_TRUE(res.error().is(Errc::kNoSuchHost)) << res.error().message();
    }
    EXPECT_EQ(
        upstreams.close(),
        "asked for http://b, which has not been added\nasked for https://a, which has not been added\n");
    EXPECT_THROW((void)upstreams.add("http://a/", echo), std::invalid_argument);
    EXPECT_THROW((void)upstreams.add("http://c/path", echo), std::invalid_argument);
    EXPECT_THROW((void)upstreams.add("c", echo), std::invalid_argument);
    EXPECT_THROW((void)upstreams.add("http://c", nullptr), std::invalid_argument);
  });
}

TEST(FakeUpstreamsDeathTest, EndTheProcessIfNobodyAsksWhatWasWrong) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run_with(2,
                        [] {
                          FakeUpstreams upstreams;
                          Client client(upstreams.client_options());
                          (void)client.get({}, "http://b/");
                        }),
               "asked for http://b, which has not been added");
}

TEST(FakeUpstreamsTest, NameTheGoroutinesThatAreLeft) {
  Semaphore leave(0);
  run_with(2, [&] {
    FakeUpstreams upstreams;
    upstreams.add("http://a", [&](Request&, ResponseWriter& res) {
      go([&] { leave.acquire(); });
      res.text("ok");
    });
    {
      Client client(upstreams.client_options());
      EXPECT_EQ(client.get({}, "http://a/")->body(), "ok");
    }
    EXPECT_TRUE(upstreams.close().contains("testing_upstreams_test.cpp"));
    leave.release();
  });
}

// The one that is closed first waits for its handler, which waits for the other one.
TEST(FakeUpstreamsTest, CloseWhileOneAsksAnother) {
  run_with(2, [] {
    tuza::testing::FakeClock clock;
    std::string got;
    {
      FakeUpstreams upstreams({.server = {.shutdown_timeout = 1h}});
      Client client(upstreams.client_options());
      Semaphore asked(0);
      upstreams.add("http://b", echo);
      upstreams.add("http://a", [&](Request&, ResponseWriter& res) {
        asked.release();
        sleep_for(1s);
        Result<ClientResponse> other = client.get({}, "http://b/");
        got = other ? other->body().value() : other.error().message();
        res.text("ok");
      });
      WaitGroup group;
      group.go([&] { (void)client.get({}, "http://a/"); });
      asked.acquire();
      EXPECT_EQ(upstreams.close(), "");
      group.wait();
    }
    EXPECT_EQ(got, "b ");
    EXPECT_LT(clock.elapsed(), 1min);
  });
}

TEST(DialTlsTest, MakesTheConnectionsOfHttpsOnlyAndTheClientAddsNoTls) {
  run_with(2, [] {
    Server server(echo);
    std::string dialled;
    const auto dial = [&](char mark) {
      return [&, mark](const Context&, const Url&) {
        dialled += mark;
        return server.dial();
      };
    };
    Client client({.dial = dial('p'), .dial_tls = dial('s')});
    EXPECT_EQ(client.get({}, "http://a/")->body(), "a ");
    EXPECT_EQ(client.get({}, "https://a/")->body(), "a ");
    EXPECT_EQ(client.get({}, "https://a/")->body(), "a ");
    EXPECT_EQ(dialled, "ps");
    EXPECT_EQ(server.client().get({}, "https://any.example/")->body(), "any.example ");
  });
}

// Another library's TLS, as far as the client can tell.
TEST(DialTlsTest, TakesConnectionsThatAreEncryptedAlready) {
  net::testing::Authority authority;
  const auto tls = net::TlsServer::load({.certificates = {authority.issue("site")}}).value();
  run_with(2, [&] {
    Server server(echo, {.client = {.tls = {.ca_file = authority.file(), .server_name = "localhost"}},
                         .socket = true,
                         .tls = tls});
    const auto own = net::TlsClient::load({.ca_file = authority.file(), .alpn = {"http/1.1"}}).value();
    Client client({.dial_tls = [&](const Context& ctx, const Url&) {
      return own->start(ctx, server.dial().value(), "localhost");
    }});
    for (int i = 0; i < 2; ++i) {
      Result<ClientResponse> res = client.get({}, server.url());
      ASSERT_TRUE(res) << res.error().message();
      EXPECT_TRUE(res->body()->starts_with("127.0.0.1:"));
    }
    EXPECT_EQ(client.stats().dialled, 1u);
  });
}

}  // namespace
}  // namespace tuza::http::testing
