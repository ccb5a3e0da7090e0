// http::testing::Server: the same answers over memory, over a socket and over TLS; its client; what it says of goroutines
// left behind. And ClientOptions::dial.
#include <tuza/http/testing_server.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/netpoll/tests/tls_testing.h>
#include <tuza/sched/go.h>
#include <tuza/sched/sync/semaphore.h>
#include <tuza/sched/time/fake_clock.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::yield_until;

enum class Way : std::uint8_t { kMemory, kSocket, kTls };

class TestingServerTest : public ::testing::TestWithParam<Way> {
 protected:
  void with_server(ServerSetup setup, const std::function<void(Server&)>& body);
  void with_server(const std::function<void(Server&)>& body) { with_server({}, body); }
};
std::string name_of(const ::testing::TestParamInfo<Way>& given) {
  return given.param == Way::kMemory ? "Memory" : given.param == Way::kSocket ? "Socket" : "Tls";
}
INSTANTIATE_TEST_SUITE_P(Over, TestingServerTest, ::testing::Values(Way::kMemory, Way::kSocket, Way::kTls),
                         name_of);

Router kinds_of_answers() {
  Router router = hello_router();
  router.handle("GET /large",
                [](Request&, ResponseWriter& res) { res.send("text/plain", std::string(1 << 20, 'x')); });
  router.handle("GET /pieces", [](Request&, ResponseWriter& res) {
    for (const char* piece : {"one ", "two ", "three"}) {
      (void)res.write(piece);
      (void)res.flush();
    }
  });
  router.handle("GET /throws", [](Request&, ResponseWriter&) { throw std::runtime_error("on purpose"); });
  router.handle("GET /moved", [](Request&, ResponseWriter& res) { res.redirect("/"); });
  router.handle("GET /host", [](Request& req, ResponseWriter& res) { res.send("text/plain", req.host()); });
  return router;
}

void TestingServerTest::with_server(ServerSetup setup, const std::function<void(Server&)>& body) {
  static net::testing::Authority authority;
  static const net::TlsCertificate site = authority.issue("site");
  run_with(2, [&] {
    if (GetParam() != Way::kMemory) setup.socket = true;
    if (GetParam() == Way::kTls) {
      setup.tls = net::TlsServer::load({.certificates = {site}}).value();
      setup.client.tls = {.ca_file = authority.file(), .server_name = "localhost"};
    }
    Server server(kinds_of_answers(), std::move(setup));
    body(server);
    EXPECT_EQ(server.close(), "");
  });
}

// What is sent on a connection of its own, and what must come back; the Date is not compared.
struct Exchanged {
  const char* title;
  std::string sent;
  std::vector<std::pair<int, std::string>> answers;  // status and body
  bool closes = false;                               // the server, behind them
};

std::vector<Exchanged> exchanges() {
  const std::string chunked = "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  return {
      {"a page", get("/"), {{200, "Hello, World!"}}},
      {"three pipelined",
       get("/") + get("/none") + get("/"),
       {{200, "Hello, World!"}, {404, "Not Found\n"}, {200, "Hello, World!"}}},
      {"a body with a length", post("/echo", "abc"), {{200, "abc"}}},
      {"a body in chunks", chunked + "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", {{200, "abcde"}}},
      {"a large response", get("/large"), {{200, std::string(1 << 20, 'x')}}},
      {"a response in pieces", get("/pieces"), {{200, "one two three"}}},
      {"a handler that throws", get("/throws"), {{500, "Internal Server Error\n"}}, true},
      {"the last request",
       "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
       {{200, "Hello, World!"}},
       true},
      {"HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", {{200, "Hello, World!"}}, true},
      {"no request", "nonsense\r\n\r\n", {{400, {}}}, true},
      {"a head that is too large",
       "GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(1 << 20, 'x'),
       {{431, {}}},
       true},
      {"a body that is too large", post("/echo", std::string(2'000, 'x')), {{413, {}}}, true},
  };
}

TEST_P(TestingServerTest, AnswersTheSameWhateverIsBelow) {
  for (const Exchanged& wanted : exchanges()) {
    SCOPED_TRACE(wanted.title);
    with_server({.server = {.body_bytes_max = 1'000}}, [&](Server& server) {
      net::Conn conn = server.dial().value();
      if (GetParam() == Way::kTls) {
        // Whom it trusts is tested elsewhere.
        conn = net::TlsClient::load({.insecure_skip_verify = true})
                   .value()
                   ->start(std::move(conn), "localhost")
                   .value();
      }
      // The server may refuse before it has read all: a reset may overtake what it says.
      WaitGroup writing;
      RawClient raw(std::move(conn));
      writing.go([&] { (void)raw.conn().write_all(wanted.sent); });
      const std::vector<Response> got = raw.read_responses(wanted.answers.size());
      ASSERT_EQ(got.size(), wanted.answers.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].status, wanted.answers[i].first);
        EXPECT_TRUE(got[i].complete);
        if (got[i].status < 400 || got[i].status == 404 || got[i].status == 500) {
          EXPECT_TRUE(got[i].body == wanted.answers[i].second);
        }
      }
      writing.wait();
      if (wanted.closes) {
        (void)raw.conn().close_write();  // the server need not wait for more
        raw.read_until_closed();
        EXPECT_TRUE(raw.closed());
      } else {
        EXPECT_TRUE(raw.conn().write_all(get("/")));
        EXPECT_EQ(raw.read_responses(wanted.answers.size() + 1).size(), wanted.answers.size() + 1)
            << "it is kept";
      }
    });
  }
}

TEST_P(TestingServerTest, ItsClientKeepsConnectionsAndComesHereForEveryHost) {
  with_server([](Server& server) {
    const Context& ctx = Context::background();
    for (int i = 0; i < 3; ++i) {
      Result<ClientResponse> res = server.client().get(ctx, server.url("/pieces"));
      ASSERT_TRUE(res) << res.error().message();
      EXPECT_EQ(res->status(), 200);
      EXPECT_EQ(res->body().value(), "one two three");
    }
    EXPECT_EQ(server.client().get(ctx, server.url("/moved")).value().body().value(), "Hello, World!");
    EXPECT_EQ(server.client().stats().dialled, 1u);
    Result<ClientResponse> posted =
        server.client().post(ctx, server.url("/echo"), "text/plain", std::string(300'000, 'y'));
    ASSERT_TRUE(posted) << posted.error().message();
    EXPECT_TRUE(posted->body().value() == std::string(300'000, 'y'));
    const std::string other =
        (server.url().starts_with("https") ? "https" : "http") + std::string("://virtual.example/host");
    EXPECT_EQ(server.client().get(ctx, other).value().body().value(), "virtual.example");
    EXPECT_EQ(server.server().stats().accepted, 2u);
  });
}

TEST_P(TestingServerTest, ClosingLetsARequestInFlightFinish) {
  Semaphore entered(0), leave(0);
  run_with(2, [&] {
    Server server(
        [&](Request&, ResponseWriter& res) {
          entered.release();
          leave.acquire();
          res.send("text/plain", "finished");
        },
        {.socket = GetParam() != Way::kMemory, .leak_check = false});
    WaitGroup group;
    group.go([&] {
      Result<ClientResponse> res = server.client().get(Context::background(), server.url());
      EXPECT_EQ(res ? res->body().value_or("cut off") : res.error().message(), "finished");
    });
    entered.acquire();
    group.go([&] { EXPECT_EQ(server.close(), ""); });
    yield_until([&] { return !server.dial(); });  // it no longer listens
    leave.release();
    group.wait();
  });
}

TEST_P(TestingServerTest, SaysWhichGoroutinesAHandlerHasLeftBehind) {
  Semaphore end(0);
  run_with(2, [&] {
    WaitGroup left;
    {
      Server server(
          [&](Request&, ResponseWriter& res) {
            left.add(1);
            go({.name = "forgotten"}, [&] {
              end.acquire();
              left.done();
            });
            res.send("text/plain", "ok");
          },
          {.socket = GetParam() != Way::kMemory});
      EXPECT_EQ(server.client().get(Context::background(), server.url()).value().body().value(), "ok");
      EXPECT_NE(server.close().find("forgotten"), std::string::npos);
    }
    end.release();
    left.wait();
  });
}

TEST(TestingServer, RefusesTlsInMemory) {
  net::testing::Authority authority;
  const net::TlsCertificate site = authority.issue("site");
  run_with(1, [&] {
    const auto tls = net::TlsServer::load({.certificates = {site}}).value();
    EXPECT_THROW(Server(hello_router(), {.tls = tls}), std::invalid_argument);
    EXPECT_THROW(Server(nullptr), std::invalid_argument);
  });
}

TEST(TestingServer, HasErrorsByOrder) {
  run_with(2, [] {
    tuza::testing::FakeClock clock;
    Server server(hello_router());
    net::Conn conn = server.dial().value();
    net::testing::fail_write(conn, std::make_error_code(std::errc::network_down), 10);
    EXPECT_TRUE(conn.write_all(get("/")).error().is(std::errc::network_down));
    server.network().fail_accepts(server.address(), std::make_error_code(std::errc::too_many_files_open));
    clock.settle();  // the accept that waits has failed, and there was no connection to turn away
    EXPECT_EQ(server.client().get(Context::background(), server.url()).value().body().value(),
              "Hello, World!");
    EXPECT_EQ(server.close(), "");
  });
}

TEST(ClientDial, MakesTheConnections) {
  run_with(2, [] {
    TestServer server(hello_router());
    std::atomic<int> dials{0};
    std::string asked_for;
    Client client({.dial = [&](const Context& ctx, const Url& url) -> Result<net::Conn> {
      ++dials;
      asked_for = url.to_string();
      EXPECT_TRUE(ctx.deadline().has_value()) << "of dial_timeout";
      return net::dial(ctx, "tcp", server.address());
    }});
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(client.get(Context::background(), "http://name.example:81/").value().body().value(),
                "Hello, World!");
    EXPECT_EQ(asked_for, "http://name.example:81/");
    EXPECT_EQ(dials.load(), 1);
    EXPECT_EQ(client.stats().dialled, 1u);
  });
}

TEST(ClientDial, ItsErrorIsTheErrorOfTheCall) {
  run_with(1, [] {
    Client client({.dial = [](const Context&, const Url&) -> Result<net::Conn> {
      return std::unexpected(Error::from_errno(ENETUNREACH, "dial"));
    }});
    EXPECT_TRUE(
        client.get(Context::background(), "http://name.example/").error().is(std::errc::network_unreachable));
  });
}

TEST(ClientDial, EndsAfterDialTimeout) {
  run_with(1, [] {
    tuza::testing::FakeClock clock;
    Client client({.dial = [](const Context& ctx, const Url&) -> Result<net::Conn> {
                     ctx.wait();
                     return std::unexpected(ctx.cause());
                   },
                   .dial_timeout = 7s});
    EXPECT_TRUE(client.get(Context::background(), "http://name.example/").error().timeout());
    EXPECT_EQ(clock.elapsed(), 7s);
  });
}

}  // namespace
}  // namespace tuza::http::testing
