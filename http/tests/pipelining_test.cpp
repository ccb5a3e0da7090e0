// Requests that arrive together: each gets its own answer, in order, whatever the other requests are.
#include <tuza/http/tests/http_testing.h>
#include <tuza/netpoll/tests/tls_testing.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/time/sleep.h>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class PipeliningTest : public WithProcs {};
TUZA_WITH_PROCS(PipeliningTest);

enum class Sent { kWhole, kSplitBetween, kByteByByte };
constexpr std::array kWaysToSend{Sent::kWhole, Sent::kSplitBetween, Sent::kByteByByte};

// "200 body|400 text|closed": the responses to `first` and `second`.
std::string answers(const std::string& address, const std::string& first, const std::string& second,
                    Sent how) {
  RawClient client(address);
  WaitGroup sending;
  sending.go([&] {
    if (how == Sent::kWhole) return client.send(first + second);
    if (how == Sent::kSplitBetween) {
      client.send(first);
      sleep_for(1ms);
      return client.send(second);
    }
    for (const char c : first + second) client.send(std::string(1, c));
  });
  client.read_responses(second.empty() ? 1 : 2);
  // A server that announces the close may take its time.
  const bool closes = client.received().find("onnection: close") != std::string::npos;
  closes ? client.read_until_closed() : client.read_until_closed(20ms);
  sending.wait();
  std::string text;
  for (const Response& r : parse_responses(client.received(), client.closed())) {
    if (r.status == 100) continue;
    text += std::to_string(r.status) + " " + r.body + (r.complete ? "|" : " cut off|");
    if (r.header("connection") == "close") text += "close|";
  }
  return text + (client.closed() ? "closed" : "open");
}

TEST_P(PipeliningTest, ABadSecondRequestIsAnsweredAndTakesNoEarlierAnswerWithIt) {
  const std::string host = "\r\nHost: localhost\r\n\r\n";
  std::string fields = "GET / HTTP/1.1\r\nHost: localhost\r\n";
  for (int i = 0; i < 20; ++i) fields += "X: y\r\n";
  const std::vector<std::pair<std::string, int>> bad{
      {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {std::string("\0\0\0\r\n\r\n", 7), 400},
      {"POST / HTTP/1.1\r\nContent-Length: x" + host, 400},
      {"GET /" + std::string(2000, 'a') + " HTTP/1.1" + host, 414},
      {fields + "\r\n", 431},
      {"BREW / HTTP/1.1" + host, 501},
      {"PROPFIND / HTTP/1.1" + host, 501},
      {"GET / HTTP/3.0" + host, 505},
      {"POST /echo HTTP/1.1\r\nContent-Length: 6000" + host, 413},
      {"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked" + host + "zz\r\n\r\n", 400},
  };
  run_with(GetParam(), [&] {
    ServerOptions options;
    options.request_line_bytes_max = 1000;
    options.headers_max = 10;
    options.body_bytes_max = 5000;
    TestServer server(hello_router(), options);
    for (const auto& [second, status] : bad) {
      for (const Sent how : kWaysToSend) {
        const std::string got = answers(server.address(), get("/"), second, how);
        const std::string expected = "200 Hello, World!|" + std::to_string(status) + " ";
        EXPECT_TRUE(got.starts_with(expected) && got.ends_with("|close|closed"))
            << got << " for " << second.substr(0, 60);
      }
    }
  });
}

// The client of the second request may be another one, behind the same proxy: it must not wait for the first.
TEST_P(PipeliningTest, AnAnswerLeavesWhenTheNextHandlerParks) {
  net::testing::Authority authority;
  const net::TlsCertificate site = authority.issue("site");
  run_with(GetParam(), [&] {
    const auto tls = net::TlsClient::load({.ca_file = authority.file()}).value();
    for (const bool with_tls : {false, true}) {
      Chan<int> arrived(1);
      Router router = hello_router();
      router.handle("GET /waits", [&](const Request&, ResponseWriter& response) {
        response.set_header("X-Begun", "before it waits");
        EXPECT_TRUE(arrived.recv().has_value());
        response.text("waited");
      });
      TestServer server(std::move(router), {},
                        with_tls ? net::TlsServer::load({.certificates = {site}}).value() : nullptr);
      const auto connect = [&] {
        return (with_tls ? tls->dial("tcp", server.address()) : net::dial("tcp", server.address())).value();
      };
      RawClient client(connect());
      client.send(get("/") + get("/") + get("/waits") + get("/"));
      client.read_responses(2);
      EXPECT_EQ(parse_responses(client.received(), false).size(), 2U);
      arrived.send(1);
      const std::vector<Response> all = client.read_responses(4);
      ASSERT_EQ(all.size(), 4U);
      for (const std::size_t i : {0U, 1U, 3U}) EXPECT_EQ(all[i].body, "Hello, World!");
      EXPECT_EQ(all[2].body, "waited");
      EXPECT_EQ(all[2].header("x-begun"), "before it waits");
    }
  });
}

// The connection's goroutine parks while another one answers for it: what is collected belongs to one of them at a time.
TEST_P(PipeliningTest, AnotherGoroutineAnswersWhileTheHandlerIsParked) {
  run_with(GetParam(), [] {
    const std::string piece(3000, 'p');
    Router router = hello_router();
    router.handle("GET /others", [&](const Request&, ResponseWriter& response) {
      WaitGroup others;
      others.go([&] {
        for (int i = 0; i < 10; ++i) EXPECT_TRUE(response.write(piece));
        EXPECT_TRUE(response.flush());
      });
      others.wait();
    });
    TestServer server(std::move(router));
    for (int round = 0; round < 50; ++round) {
      RawClient client(server.address());
      client.send(get("/") + get("/others") + get("/") + get("/others") + get("/"));
      const std::vector<Response> all = client.read_responses(5);
      ASSERT_EQ(all.size(), 5U);
      for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(all[i].body.size(), i % 2 == 0 ? 13 : 10 * piece.size()) << i;
        EXPECT_EQ(all[i].status, 200);
      }
      client.send(get("/"));  // the connection is idle in between, without a working set
      EXPECT_EQ(client.read_responses(6).size(), 6U);
    }
  });
}

TEST_P(PipeliningTest, ASecondHeadThatDoesNotArriveInTimeGets408) {
  run_with(GetParam(), [] {
    ServerOptions options;
    options.header_timeout = 100ms;
    TestServer server(hello_router(), options);
    RawClient client(server.address());
    client.send(get("/") + "GET / HT");
    client.read_until_closed();
    const std::vector<Response> all = parse_responses(client.received(), true);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].body, "Hello, World!");
    EXPECT_EQ(all[1].status, 408);
  });
}

TEST_P(PipeliningTest, ASecondHeadThatIsCutOffGets400) {
  run_with(GetParam(), [] {
    TestServer server(hello_router());
    RawClient client(server.address());
    client.send(get("/") + "GET / HT");
    ASSERT_TRUE(client.conn().close_write());
    client.read_until_closed();
    const std::vector<Response> all = parse_responses(client.received(), true);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].body, "Hello, World!");
    EXPECT_EQ(all[1].status, 400);
  });
}

TEST_P(PipeliningTest, AHandlerThatEndsItsGoroutineTakesNoEarlierAnswerWithIt) {
  run_with(GetParam(), [] {
    Router router = hello_router();
    router.handle("GET /exit", [](Request&, ResponseWriter&) { goexit(); });
    TestServer server(std::move(router));
    RawClient client(server.address());
    client.send(get("/") + get("/") + get("/exit") + get("/"));
    client.read_until_closed();
    const std::vector<Response> all = parse_responses(client.received(), true);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[1].body, "Hello, World!");
  });
}

TEST_P(PipeliningTest, EachOfAPairIsAnsweredAsItIsAlone) {
  const std::string chunked = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n";
  const std::string large(20'000, 'x');
  const std::vector<std::string> requests{
      get("/"),
      get("/nowhere"),
      get("/stream"),
      get("/empty"),
      get("/throws"),
      "\r\n" + get("/"),
      "DELETE / HTTP/1.1\r\nHost: a\r\n\r\n",
      "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
      "GET / HTTP/1.0\r\n\r\n",
      post("/echo", "hello"),
      post("/echo", "hello", "Expect: 100-continue\r\n"),
      post("/nowhere", "a body that nobody reads"),
      post("/echo", large),
      chunked + "\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n",
      chunked + "\r\n0\r\n\r\n",
      chunked + "\r\n5\r\nhelloXX",
      "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
  };
  run_with(GetParam(), [&] {
    Router router = hello_router();
    router.handle("GET /stream", [](Request&, ResponseWriter& res) {
      (void)res.write("bit ");
      (void)res.flush();
      (void)res.write("by bit");
    });
    router.handle("GET /empty", [](Request&, ResponseWriter& res) {
      res.status(204);
      (void)res.flush();
    });
    router.handle("GET /throws", [](Request&, ResponseWriter&) { throw 1; });
    TestServer server(std::move(router));
    std::vector<std::string> alone;
    for (const std::string& request : requests) {
      alone.push_back(answers(server.address(), request, "", Sent::kWhole));
    }
    WaitGroup group;
    for (std::size_t a = 0; a < requests.size(); ++a) {
      group.go([&, a] {
        for (std::size_t b = 0; b < requests.size(); ++b) {
          std::string expected = alone[a];
          if (expected.ends_with("open")) {
            expected = expected.substr(0, expected.size() - 4) + alone[b];
          }
          for (const Sent how : kWaysToSend) {
            if (how == Sent::kByteByByte && requests[a].size() + requests[b].size() > 1000) continue;
            EXPECT_EQ(answers(server.address(), requests[a], requests[b], how), expected)
                << requests[a].substr(0, 100) << "\nand\n"
                << requests[b].substr(0, 100);
          }
        }
      });
    }
    group.wait();
  });
}

}  // namespace
}  // namespace tuza::http::testing
