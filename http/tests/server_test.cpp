// What a server does for its clients, and what it refuses them.
#include <tuza/http/tests/http_testing.h>
#include <tuza/http/tests/tcp_info.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/sched/log.h>
#include <tuza/sched/time/sleep.h>

#include <array>
#include <stdexcept>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class ServerTest : public WithProcs {};
TUZA_WITH_PROCS(ServerTest);

TEST_P(ServerTest, AnswersWithLengthDateAndServer) {
  run_with(GetParam(), [] {
    TestServer server(hello_router());
    const Response r = fetch(server.address(), get("/"));
    EXPECT_EQ(r.status, 200);
    EXPECT_EQ(r.body, "Hello, World!");
    EXPECT_EQ(r.header("content-length"), "13");
    EXPECT_EQ(r.header("content-type"), "text/plain; charset=utf-8");
    EXPECT_EQ(r.header("server"), "Tuza");
    // Sun, 06 Nov 1994 08:49:37 GMT
    const std::string date = r.header("date");
    ASSERT_EQ(date.size(), 29u);
    EXPECT_EQ(date.substr(25), " GMT");
    EXPECT_FALSE(r.has("connection"));
  });
}

TEST_P(ServerTest, KeepsTheConnection) {
  run_with(GetParam(), [] {
    TestServer server(hello_router());
    RawClient client(server.address());
    for (std::size_t i = 1; i <= 100; ++i) {
      client.send(get("/"));
      ASSERT_EQ(client.read_responses(i).size(), i);
    }
    EXPECT_FALSE(client.closed());
  });
}

TEST_P(ServerTest, ClosesWhenTheClientAsksForItAndForHttp10) {
  run_with(GetParam(), [] {
    TestServer server(hello_router());
    for (const char* request :
         {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
          "GET / HTTP/1.1\r\nHost: a\r\nConnection: x, CLOSE\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"}) {
      RawClient client(server.address());
      client.send(request);
      client.read_until_closed();
      EXPECT_TRUE(client.closed());
      const Response r = parse_responses(client.received(), true).at(0);
      EXPECT_EQ(r.status, 200);
      EXPECT_EQ(r.header("connection"), "close");
    }
    RawClient client(server.address());
    client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(client.read_responses(1).at(0).header("connection"), "keep-alive");
    client.send("GET / HTTP/1.0\r\n\r\n");
    EXPECT_EQ(client.read_responses(2).size(), 2u);
  });
}

TEST_P(ServerTest, AnswersPipelinedRequestsInOrderAndInOneWrite) {
  run_with(GetParam(), [] {
    Router router;
    router.handle("GET /{n}",
                  [](Request& req, ResponseWriter& res) { res.text(req.path_value<std::string_view>("n")); });
    TestServer server(std::move(router));
    RawClient client(server.address());
    std::string batch;
    for (int i = 0; i < 50; ++i) batch += get("/" + std::to_string(i));
    client.send(batch);
    const std::vector<Response> all = client.read_responses(50);
    ASSERT_EQ(all.size(), 50u);
    for (std::size_t i = 0; i < 50; ++i) EXPECT_EQ(all[i].body, std::to_string(i));
    const auto segments =
        net::detail::ConnParts::descriptor(client.conn()).control("getsockopt", [](int fd) -> long {
          return data_segments_received(fd);
        });
    EXPECT_EQ(*segments, 1);
  });
}

TEST_P(ServerTest, HeadGetsTheHeadOfGet) {
  run_with(GetParam(), [] {
    TestServer server(hello_router());
    RawClient client(server.address());
    client.send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n" + get("/"));
    client.read_until([&] { return client.received().find("Hello") != std::string::npos; });
    const std::vector<Response> all = parse_responses(client.received(), false, true);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].header("content-length"), "13");
    EXPECT_EQ(all[1].body, "Hello, World!");
  });
}

TEST_P(ServerTest, TakesBodiesWithALengthAndInChunks) {
  run_with(GetParam(), [] {
    TestServer server(hello_router());
    std::string large(300'000, 'x');
    for (std::size_t i = 0; i < large.size(); i += 97) large[i] = static_cast<char>('a' + i % 26);
    for (const std::string& body : {std::string(), std::string("a"), std::string(8192, 'b'), large}) {
      EXPECT_EQ(fetch(server.address(), post("/echo", body)).body, body);
      std::string chunked = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
      for (std::size_t at = 0; at < body.size(); at += 1000) {
        const std::string piece = body.substr(at, 1000);
        char size[32];
        std::snprintf(size, sizeof size, "%zX;ext=\"v\"\r\n", piece.size());
        chunked += size + piece + "\r\n";
      }
      EXPECT_EQ(fetch(server.address(), chunked + "0\r\nTrailer: x\r\n\r\n").body, body);
    }
  });
}

TEST_P(ServerTest, SkipsABodyThatNobodyWantedAndKeepsTheConnection) {
  run_with(GetParam(), [] {
    TestServer server(hello_router());
    RawClient client(server.address());
    client.send(post("/", std::string(100'000, 'x')) + get("/"));
    const std::vector<Response> all = client.read_responses(2);
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0].status, 405);
    EXPECT_EQ(all[0].header("allow"), "GET, HEAD, OPTIONS");
    EXPECT_EQ(all[1].status, 200);
  });
}

TEST_P(ServerTest, AsksForABodyOnlyWhenTheHandlerWantsIt) {
  run_with(GetParam(), [] {
    TestServer server(hello_router());
    const std::string head = " HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
    RawClient wanted(server.address());
    wanted.send("POST /echo" + head);
    wanted.read_until([&] { return wanted.received().find("\r\n\r\n") != std::string::npos; });
    EXPECT_EQ(wanted.received(), "HTTP/1.1 100 Continue\r\n\r\n");
    wanted.send("hello");
    EXPECT_EQ(wanted.read_responses(1).at(0).body, "hello");

    RawClient unwanted(server.address());
    unwanted.send("POST /nowhere" + head);
    unwanted.read_until_closed();
    const std::vector<Response> all = parse_responses(unwanted.received(), true);
    ASSERT_EQ(all.size(), 1u) << "no 100 Continue";
    EXPECT_EQ(all[0].status, 404);
    EXPECT_EQ(all[0].header("connection"), "close");

    EXPECT_EQ(fetch(server.address(), "GET / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\n\r\n").status, 417);
  });
}

// -- Handlers.

TEST_P(ServerTest, StreamsInChunksWhatTheHandlerWritesBitByBit) {
  run_with(GetParam(), [] {
    Router router;
    router.handle("GET /stream", [](Request&, ResponseWriter& res) {
      for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(res.write(std::string(1000, static_cast<char>('a' + i % 26))));
        if (i % 10 == 0) yield();
      }
    });
    router.handle("GET /small", [](Request&, ResponseWriter& res) {
      (void)res.write("one ");
      (void)res.write("two");
    });
    router.handle("GET /known", [](Request&, ResponseWriter& res) {
      res.set_header("Content-Length", "30000");
      for (int i = 0; i < 30; ++i) (void)res.write(std::string(1000, 'k'));
    });
    TestServer server(std::move(router));
    const Response streamed = fetch(server.address(), get("/stream"));
    EXPECT_EQ(streamed.header("transfer-encoding"), "chunked");
    EXPECT_EQ(streamed.body.size(), 100'000u);
    const Response small = fetch(server.address(), get("/small"));
    EXPECT_EQ(small.body, "one two");
    EXPECT_EQ(small.header("content-length"), "7");
    const Response known = fetch(server.address(), get("/known"));
    EXPECT_EQ(known.header("content-length"), "30000");
    EXPECT_EQ(known.body.size(), 30'000u);
    // HTTP/1.0 has no chunks: the end of the connection is the end of the body.
    RawClient old(server.address());
    old.send("GET /stream HTTP/1.0\r\n\r\n");
    old.read_until_closed();
    const Response last = parse_responses(old.received(), true).at(0);
    EXPECT_FALSE(last.has("transfer-encoding"));
    EXPECT_EQ(last.body.size(), 100'000u);
  });
}

TEST_P(ServerTest, SmallAndLargePiecesOfABodyComeInTheirOrder) {
  run_with(GetParam(), [] {
    // The client parses all that it has after each read: ThreadSanitizer takes a minute for a megabyte.
    constexpr std::size_t kLargest = rt::kTsan ? 1 << 17 : 1 << 20;
    const std::array<std::string, 6> pieces{std::string(10, 'a'),    std::string(kLargest, 'b'),
                                            std::string(100, 'c'),   std::string(16 << 10, 'd'),
                                            std::string(5'000, 'e'), std::string(40'000, 'f')};
    std::string all;
    for (const std::string& piece : pieces) all += piece;
    const auto write = [&](Request&, ResponseWriter& res) {
      for (const std::string& piece : pieces) ASSERT_TRUE(res.write(piece));
    };
    Router router;
    router.handle("GET /chunked", write);
    router.handle("GET /known", [&](Request& req, ResponseWriter& res) {
      res.set_header("Content-Length", std::to_string(all.size()));
      write(req, res);
    });
    router.handle("GET /large", [&](Request&, ResponseWriter& res) { ASSERT_TRUE(res.write(pieces[1])); });
    TestServer server(std::move(router));
    RawClient client(server.address());
    client.send(get("/chunked") + get("/known") + get("/large"));
    const std::vector<Response> responses = client.read_responses(3);
    ASSERT_EQ(responses.size(), 3u);
    EXPECT_EQ(responses[0].header("transfer-encoding"), "chunked");
    EXPECT_TRUE(responses[0].body == all);
    EXPECT_TRUE(responses[1].body == all);
    EXPECT_TRUE(responses[2].body == pieces[1]);
    RawClient old(server.address());
    old.send("GET /chunked HTTP/1.0\r\n\r\n");
    old.read_until_closed();
    EXPECT_TRUE(parse_responses(old.received(), true).at(0).body == all);
    EXPECT_EQ(
        fetch(server.address(), "HEAD /known HTTP/1.1\r\nHost: a\r\n\r\n", true).header("content-length"),
        std::to_string(all.size()));
  });
}

TEST_P(ServerTest, FlushSendsWhatIsThereAtOnce) {
  run_with(GetParam(), [] {
    WaitGroup seen;
    seen.add(1);
    Router router;
    router.handle("GET /{$}", [&seen](Request&, ResponseWriter& res) {
      (void)res.write("first");
      ASSERT_TRUE(res.flush());
      seen.wait();  // the client must have got it before the handler goes on
      (void)res.write("second");
    });
    TestServer server(std::move(router));
    RawClient client(server.address());
    client.send(get("/"));
    client.read_until([&] { return client.received().find("first") != std::string::npos; });
    seen.done();
    EXPECT_EQ(client.read_responses(1).at(0).body, "firstsecond");
  });
}

std::vector<std::string> g_log;
Mutex g_log_mutex;

TEST_P(ServerTest, AnExceptionBecomesA500AndALogLineAndNothingElse) {
  set_log_sink([](LogLevel, std::string_view line) {
    const std::scoped_lock lock(g_log_mutex);
    g_log.emplace_back(line);
  });
  run_with(GetParam(), [] {
    Router router;
    router.handle("GET /throw", [](Request&, ResponseWriter& res) {
      res.set_header("X-Half", "done");
      (void)res.write("never seen");
      throw std::runtime_error("the disk\r\nis \x1b[1mgone");
    });
    router.handle("GET /late", [](Request&, ResponseWriter& res) {
      (void)res.write("begun");
      (void)res.flush();
      throw 42;
    });
    router.handle("GET /order", [](Request&, ResponseWriter& res) {
      res.text("whole");
      res.status(404);
    });
    router.handle("GET /{$}", [](Request&, ResponseWriter& res) { res.text("fine"); });
    TestServer server(std::move(router));
    const Response thrown = fetch(server.address(), get("/throw"));
    EXPECT_EQ(thrown.status, 500);
    EXPECT_EQ(thrown.body, "Internal Server Error\n");
    EXPECT_TRUE(thrown.has("x-half")) << "it may be middleware's";
    EXPECT_EQ(thrown.header("connection"), "close");
    // Sent data cannot be taken back: the client sees a body without an end.
    RawClient late(server.address());
    late.send(get("/late"));
    late.read_until_closed();
    const Response cut = parse_responses(late.received(), true).at(0);
    EXPECT_EQ(cut.status, 200);
    EXPECT_FALSE(cut.complete);
    EXPECT_EQ(fetch(server.address(), get("/")).body, "fine");
    // At most ten lines a second are logged, and other tests may just have used them up.
    const auto logged = [] {
      const std::scoped_lock lock(g_log_mutex);
      return !g_log.empty();
    };
    while (!logged()) fetch(server.address(), get("/throw"));
  });
  set_log_sink(nullptr);
  EXPECT_NE(g_log[0].find("the handler of GET /throw has thrown: the disk\\x0d\\x0ais \\x1b[1mgone"),
            std::string::npos)
      << g_log[0];
  g_log.clear();
}

TEST_P(ServerTest, AHandlerMayEndItsGoroutine) {
  run_with(GetParam(), [] {
    Router router;
    router.handle("GET /exit", [](Request&, ResponseWriter&) { goexit(); });
    TestServer server(std::move(router));
    RawClient client(server.address());
    client.send(get("/exit"));
    client.read_until_closed();
    EXPECT_TRUE(client.closed());
    EXPECT_EQ(client.received(), "");
  });
}

TEST_P(ServerTest, HandlersMayBlockWithoutStoppingOthers) {
  run_with(GetParam(), [] {
    WaitGroup release;
    release.add(1);
    std::atomic<int> blocked{0};
    Router router;
    router.handle("GET /block", [&](Request&, ResponseWriter& res) {
      ++blocked;
      release.wait();
      res.text("released");
    });
    router.handle("GET /{$}", [](Request&, ResponseWriter& res) { res.text("fine"); });
    TestServer server(std::move(router));
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 50; ++i) {
      clients.push_back(std::make_unique<RawClient>(server.address()));
      clients.back()->send(get("/block"));
    }
    tuza::testing::yield_until([&] { return blocked.load() == 50; });
    EXPECT_EQ(fetch(server.address(), get("/")).body, "fine");
    release.done();
    for (auto& client : clients) EXPECT_EQ(client->read_responses(1).at(0).body, "released");
  });
}

TEST_P(ServerTest, RefusesHeaderFieldsThatWouldSplitTheResponse) {
  run_with(GetParam(), [] {
    Router router;
    router.handle("GET /{$}", [](Request& req, ResponseWriter& res) {
      EXPECT_THROW(res.set_header("X-A", "b\r\nSet-Cookie: stolen"), std::invalid_argument);
      EXPECT_THROW(res.set_header("X-A", std::string_view("b\0", 2)), std::invalid_argument);
      EXPECT_THROW(res.set_header("X A", "b"), std::invalid_argument);
      EXPECT_THROW(res.set_header("", "b"), std::invalid_argument);
      EXPECT_THROW(res.set_header("Transfer-Encoding", "chunked"), std::invalid_argument);
      EXPECT_THROW(res.set_header("Content-Length", "1x"), std::invalid_argument);
      EXPECT_THROW(res.status(99), std::invalid_argument);
      res.set_header("X-Query", req.query_value("q").value_or("none"));
      res.text("ok");
    });
    TestServer server(std::move(router));
    const Response r = fetch(server.address(), get("/?a=b&q=x%20y+z"));
    EXPECT_EQ(r.header("x-query"), "x y z");
    EXPECT_FALSE(r.has("set-cookie"));
    EXPECT_FALSE(r.has("x-a"));
  });
}

// -- The end.

TEST_P(ServerTest, ShutdownEndsIdleConnectionsAndLetsRequestsFinish) {
  run_with(GetParam(), [] {
    WaitGroup begun, go_on;
    begun.add(1);
    go_on.add(1);
    Router router;
    router.handle("GET /slow", [&](Request&, ResponseWriter& res) {
      begun.done();
      go_on.wait();
      res.text("finished");
    });
    router.handle("GET /{$}", [](Request&, ResponseWriter& res) { res.text("fine"); });
    auto server = std::make_unique<TestServer>(std::move(router));
    const std::string address = server->address();
    RawClient idle(address), busy(address);
    idle.send(get("/"));
    ASSERT_EQ(idle.read_responses(1).size(), 1u);
    busy.send(get("/slow"));
    begun.wait();
    WaitGroup stopping;
    stopping.go([&] { EXPECT_TRUE(server->server().shutdown()); });
    idle.read_until_closed();
    EXPECT_TRUE(idle.closed());
    EXPECT_FALSE(net::dial("tcp", address)) << "it must not accept any more";
    go_on.done();
    busy.read_until_closed();
    const Response last = parse_responses(busy.received(), true).at(0);
    EXPECT_EQ(last.body, "finished");
    EXPECT_EQ(last.header("connection"), "close");
    stopping.wait();
  });
}

TEST_P(ServerTest, ShutdownCutsOffWhatDoesNotFinishInTime) {
  run_with(GetParam(), [] {
    ServerOptions options;
    options.shutdown_timeout = 50ms;
    std::atomic<bool> waiting{false};
    Router router;
    router.handle("POST /{$}", [&](Request& req, ResponseWriter&) {
      waiting = true;
      EXPECT_FALSE(req.body()) << "the body never comes";
    });
    TestServer server(std::move(router), options);
    RawClient client(server.address());
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n");
    tuza::testing::yield_until([&] { return waiting.load(); });
    EXPECT_FALSE(server.server().shutdown());
    client.read_until_closed();
    EXPECT_TRUE(client.closed());
  });
}

TEST_P(ServerTest, ListenAndServeReturnAtOnceWhereTheyCannotServe) {
  run_with(GetParam(), [] {
    http::Server server(hello_router());
    ASSERT_TRUE(server.listen("127.0.0.1:0"));
    const net::Endpoint first = server.endpoint();
    EXPECT_TRUE(server.listen("127.0.0.1:0").error().is(std::errc::device_or_resource_busy));
    EXPECT_EQ(net::to_string(server.endpoint()), net::to_string(first));
    EXPECT_TRUE(server.shutdown());
    EXPECT_TRUE(server.serve());
    EXPECT_TRUE(server.listen("127.0.0.1:0").error().closed());

    http::Server never(hello_router());
    EXPECT_TRUE(never.shutdown());
    EXPECT_TRUE(never.listen("127.0.0.1:0").error().closed());
    EXPECT_TRUE(never.serve());
    EXPECT_EQ(never.connections(), 0u);
  });
}

TEST_P(ServerTest, ManyClientsAtOnce) {
  run_with(GetParam(), [] {
    TestServer server(hello_router());
    WaitGroup group;
    for (int c = 0; c < tuza::testing::scaled(100); ++c) {
      group.go([&server, c] {
        RawClient client(server.address());
        for (std::size_t i = 1; i <= 20; ++i) {
          const std::string body = std::to_string(c) + " " + std::to_string(i);
          client.send(post("/echo", body));
          const std::vector<Response> all = client.read_responses(i);
          ASSERT_EQ(all.size(), i);
          ASSERT_EQ(all.back().body, body);
        }
      });
    }
    group.wait();
  });
}

}  // namespace
}  // namespace tuza::http::testing
