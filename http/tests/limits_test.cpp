// What a server refuses its clients: limits at N and N+1, timeouts, peers that disconnect.
#include <tuza/http/middleware/access_log.h>
#include <tuza/http/middleware/body_limit.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/netpoll/tests/tls_testing.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/mutex.h>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class LimitsTest : public WithProcs {};
TUZA_WITH_PROCS(LimitsTest);

// -- Limits, at N and N+1.

TEST_P(LimitsTest, LimitsAreExact) {
  run_with(GetParam(), [] {
    ServerOptions options;
    options.request_line_bytes_max = 1000;
    options.head_bytes_max = 4000;
    options.headers_max = 10;
    options.body_bytes_max = 5000;
    TestServer server(hello_router(), options);
    const auto status = [&](const std::string& request) { return fetch(server.address(), request).status; };

    EXPECT_EQ(status(get("/" + std::string(999, 'a'))), 404);
    EXPECT_EQ(status(get("/" + std::string(1000, 'a'))), 414);
    EXPECT_EQ(status(get("/" + std::string(100'000, 'a'))), 414);

    const auto with_fields = [](int n) {
      std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\n";
      for (int i = 1; i < n; ++i) request += "X-" + std::to_string(i) + ": v\r\n";
      return request + "\r\n";
    };
    EXPECT_EQ(status(with_fields(10)), 200);
    EXPECT_EQ(status(with_fields(11)), 431);

    const auto of_size = [](std::size_t n) {
      std::string request = "GET / HTTP/1.1\r\nHost: localhost\r\nX: ";
      return request + std::string(n - request.size() - 4, 'x') + "\r\n\r\n";
    };
    EXPECT_EQ(status(of_size(4000)), 200);
    EXPECT_EQ(status(of_size(4001)), 431);
    EXPECT_EQ(status(of_size(2'000'000)), 431);

    EXPECT_EQ(status(post("/echo", std::string(5000, 'b'))), 200);
    EXPECT_EQ(status(post("/echo", std::string(5001, 'b'))), 413);
    const auto chunked = [](std::size_t n) {
      char size[32];
      std::snprintf(size, sizeof size, "%zx\r\n", n);
      return "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" +
             (size + std::string(n, 'c')) + "\r\n0\r\n\r\n";
    };
    EXPECT_EQ(status(chunked(5000)), 200);
    EXPECT_EQ(status(chunked(5001)), 413);
  });
}

TEST_P(LimitsTest, RefusedRequestsAreReported) {
  run_with(GetParam(), [] {
    std::vector<std::string> lines;
    Mutex mutex;
    ServerOptions options;
    options.head_bytes_max = 1000;
    options.body_bytes_max = 5;
    options.header_timeout = 20ms;
    const auto log = refused_log({.format = AccessLogFormat::kJson, .write = [&](std::string_view line) {
                                    const LockGuard lock(mutex);
                                    lines.emplace_back(line);
                                  }});
    options.on_refused = log;
    TestServer server(hello_router(), options);
    const auto line_of = [&](const std::string& request) {
      RawClient client(server.address());
      client.send(request);
      client.read_until([&] { return client.received().contains("\r\n\r\n"); });
      const LockGuard lock(mutex);
      std::string all;
      for (const std::string& line : std::exchange(lines, {})) all += line;
      return all.substr(std::min(all.find(R"("request)"), all.size()));
    };
    EXPECT_EQ(line_of(get("/")), "");
    EXPECT_EQ(
        line_of("\r\nGET /a \x1b[2J HTTP/1.1\r\n\r\n"),
        "\"request\":\"GET /a \\u001b[2J HTTP/1.1\",\"status\":400,\"reason\":\"malformed request line\"}\n");
    EXPECT_EQ(line_of("GET / HTTP/1.1\r\nX: " + std::string(2000, 'x')),
              "\"request\":\"GET / HTTP/1.1\",\"status\":431,\"reason\":\"header fields too large\"}\n");
    EXPECT_EQ(line_of(post("/echo", "123456")),
              "\"request\":\"POST /echo HTTP/1.1\",\"status\":413,\"reason\":\"request body too large\"}\n");
    EXPECT_EQ(line_of("GET /slo"),
              "\"request\":\"GET /slo\",\"status\":408,\"reason\":\"the head did not arrive in time\"}\n");
    // The handler had this one: its middleware knows.
    EXPECT_EQ(line_of("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), "");
  });
}

// A user who leaves out the "s" of https should learn why.
TEST_P(LimitsTest, PlainHttpOnAPortForTlsIsAnsweredInPlainText) {
  net::testing::Authority authority;
  const net::TlsCertificate site = authority.issue("site");
  run_with(GetParam(), [&] {
    Chan<std::string> refused(8);
    ServerOptions options;
    options.on_refused = [&](const RefusedRequest& one) {
      refused.send(std::to_string(one.status) + " " + std::string(one.reason));
    };
    TestServer server(hello_router(), options, net::TlsServer::load({.certificates = {site}}).value());
    for (const std::string& request :
         {get("/"), post("/echo", std::string(100'000, 'b')), std::string("HEAD / HTTP/1.1\r\n"),
          std::string("OPTIONS * HTTP/1.1\r\n"), std::string("DELETE /x"),
          std::string("\r\n\nGET / HTTP/1.1\r\n"), std::string("M-SEARCH * HTTP/1.1\r\n"),
          std::string("CONNECT a:1 HTTP/1.1\r\n\r\n")}) {
      RawClient client(server.address());
      client.send(request);
      client.read_until_closed();
      const bool to_head = request.starts_with("HEAD");
      const auto got = parse_responses(client.received(), true, to_head);
      ASSERT_EQ(got.size(), 1u) << request.substr(0, 30);
      EXPECT_EQ(got[0].status, 400);
      EXPECT_EQ(got[0].body, to_head ? "" : "this port speaks HTTPS, and was sent plain HTTP\n");
      EXPECT_EQ(got[0].header("connection"), "close");
      EXPECT_EQ(refused.recv(), "400 this port speaks HTTPS, and was sent plain HTTP");
    }
    for (const char* other : {"gibberish, and more of it", "G", "\x16\x03\x01 no hello", "1234 6789 12345678",
                              "\r\n\r\n", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJ /"}) {
      RawClient client(server.address());
      client.send(other);
      ASSERT_TRUE(client.conn().close_write());
      client.read_until_closed();
      EXPECT_FALSE(client.received().contains("HTTP")) << other;
    }
  });
}

// Each gap is within the limit, but all of them together are not: a little data must not carry any amount of it.
TEST_P(LimitsTest, ExtensionsOfAllChunksCountTogether) {
  run_with(GetParam(), [] {
    ServerOptions options;
    options.chunk_overhead_bytes_max = 1000;
    TestServer server(hello_router(), options);
    const auto status = [&](int chunks, std::size_t extension) {
      std::string request = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
      for (int i = 0; i < chunks; ++i) request += "1;" + std::string(extension, 'e') + "\r\nx\r\n";
      return fetch(server.address(), request + "0\r\n\r\n").status;
    };
    EXPECT_EQ(status(1, 900), 200);
    EXPECT_EQ(status(2, 900), 400);
    EXPECT_EQ(status(10'000, 2), 200) << "small chunks are well-formed";
  });
}

TEST_P(LimitsTest, AnswersWhatItDoesNotImplement) {
  run_with(GetParam(), [] {
    TestServer server(hello_router());
    const auto status = [&](const char* line) {
      return fetch(server.address(), std::string(line) + "\r\nHost: localhost\r\n\r\n").status;
    };
    EXPECT_EQ(status("BREW / HTTP/1.1"), 501);
    EXPECT_EQ(status("PROPFIND / HTTP/1.1"), 501);
    EXPECT_EQ(status("get / HTTP/1.1"), 501);
    EXPECT_EQ(status("CONNECT a:1 HTTP/1.1"), 501);
    EXPECT_EQ(status("G@T / HTTP/1.1"), 400);
    EXPECT_EQ(status("GET / HTTP/2.0"), 505);
    EXPECT_EQ(status("GET / HTTP/1.2"), 200);
    EXPECT_EQ(status("GET / HTTP/1.22"), 400);
    EXPECT_EQ(status("GET / HTTP/1"), 400);
    EXPECT_EQ(status(" GET / HTTP/1.1"), 400);
    EXPECT_EQ(status("GET / ICE/1.0"), 400);
    EXPECT_EQ(status("OPTIONS * RTSP/1.0"), 400);
    EXPECT_EQ(
        fetch(server.address(), "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n")
            .status,
        501);
  });
}

// -- Time.

TEST_P(LimitsTest, AClientThatDripsIsCutOffByTheHeaderTimeout) {
  run_with(GetParam(), [] {
    ServerOptions options;
    options.header_timeout = 200ms;
    TestServer server(hello_router(), options);
    RawClient client(server.address());
    WaitGroup dripping;
    std::atomic<bool> stop{false};
    dripping.go([&] {
      for (const char c : get("/")) {
        if (stop) return;
        client.send(std::string(1, c));
        sleep_for(20ms);  // each byte is in time; the head as a whole is not
      }
    });
    client.read_until_closed();
    stop = true;
    dripping.wait();
    const std::vector<Response> all = parse_responses(client.received(), true);
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].status, 408);
  });
}

TEST_P(LimitsTest, AnIdleConnectionIsClosedWithoutAResponse) {
  run_with(GetParam(), [] {
    ServerOptions options;
    options.idle_timeout = 100ms;
    TestServer server(hello_router(), options);
    RawClient silent(server.address());
    silent.read_until_closed();
    EXPECT_TRUE(silent.closed());
    EXPECT_EQ(silent.received(), "");
    for (bool answered = false; !answered;) {  // on a slow machine the time may run out before it has sent
      RawClient client(server.address());
      client.send(get("/"));
      answered = client.read_responses(1).size() == 1;
      const std::size_t received = client.received().size();
      client.read_until_closed();
      EXPECT_TRUE(client.closed());
      EXPECT_EQ(client.received().size(), received);
    }
  });
}

TEST_P(LimitsTest, ABodyThatIsTooSlowGets408) {
  run_with(GetParam(), [] {
    ServerOptions options;
    options.body_timeout = 150ms;
    TestServer server(hello_router(), options);
    RawClient client(server.address());
    client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nonly this");
    client.read_until_closed();
    EXPECT_EQ(parse_responses(client.received(), true).at(0).status, 408);
  });
}

TEST_P(LimitsTest, AClientThatDoesNotReadIsCutOff) {
  run_with(GetParam(), [] {
    ServerOptions options;
    options.write_timeout = 100ms;
    Result<void> written;
    WaitGroup returned;
    returned.add(1);
    Router router;
    router.handle("GET /{$}", [&](Request&, ResponseWriter& res) {
      const std::string piece(64 << 10, 'x');
      while ((written = res.write(piece))) {
      }
      returned.done();
    });
    TestServer server(std::move(router), options);
    RawClient client(server.address());
    client.send(get("/"));
    returned.wait();
    EXPECT_FALSE(written);
  });
}

// -- Peers that disconnect, and shutdown.

TEST_P(LimitsTest, SurvivesPeersThatReset) {
  run_with(GetParam(), [] {
    Router router = hello_router();
    router.handle("GET /large", [](Request&, ResponseWriter& res) {
      const std::string piece(100'000, 'x');
      for (int i = 0; i < 100; ++i) {
        if (!res.write(piece)) return;
      }
    });
    TestServer server(std::move(router));
    for (int i = 0; i < tuza::testing::scaled(200); ++i) {
      RawClient client(server.address());
      client.send(i % 2 == 0 ? get("/large") : "GET / HT");
      if (i % 3 == 0) sleep_for(200us);
      (void)client.conn().set_linger_zero();
      client.conn().close();
    }
    EXPECT_EQ(fetch(server.address(), get("/")).status, 200);
  });
}

TEST_P(LimitsTest, ARouteWithALargerLimitKeepsItsConnection) {
  run_with(GetParam(), [] {
    Router router;
    RouteGroup uploads = router.group("/uploads");
    uploads.use(body_limit(200));
    uploads.handle("POST /", [](Request& req, ResponseWriter& res) {
      if (const auto body = req.body()) res.text(std::to_string(body->size()));
    });
    TestServer server(std::move(router), {.body_bytes_max = 100});
    RawClient client(server.address());
    const std::string head = "POST /uploads/ HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: ";
    for (std::size_t i = 1; i <= 2; ++i) {
      client.send(head + "150\r\n\r\n");
      client.read_until([&] { return client.received().ends_with("100 Continue\r\n\r\n"); });
      client.send(std::string(150, 'x'));
      client.read_until([&] { return client.received().ends_with("\r\n\r\n150"); });
    }
    client.send(head + "201\r\n\r\n");
    client.read_until_closed();
    EXPECT_NE(client.received().find("HTTP/1.1 413 "), std::string::npos);
  });
}

}  // namespace
}  // namespace tuza::http::testing
