// What middleware sees of a response, and what the server counts in addition.
#include <tuza/http/file_server.h>
#include <tuza/http/middleware.h>
#include <tuza/http/testing.h>
#include <tuza/http/tests/file_folder.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/netpoll/tests/tls_testing.h>
#include <tuza/sched/goroutine.h>

#include <stdexcept>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class MiddlewareTest : public WithProcs {};
TUZA_WITH_PROCS(MiddlewareTest);

struct Seen {
  int status = -1;
  std::uint64_t bytes = 0;
  bool operator==(const Seen&) const = default;
};

void PrintTo(const Seen& seen, std::ostream* out) { *out << seen.status << " with " << seen.bytes; }

// Records the outcome of each request; one client at a time.
Middleware recorder(std::vector<Seen>& all, Mutex& mutex) {
  return [&](Handler next) -> Handler {
    return [&, next = std::move(next)](Request& req, ResponseWriter& res) {
      observe(next, req, res, [&](int status) {
        const std::scoped_lock lock(mutex);
        all.push_back({status, res.bytes_written()});
      });
    };
  };
}

Router all_kinds() {
  Router router = hello_router();
  router.handle("GET /empty", [](Request&, ResponseWriter&) {});
  router.handle("GET /teapot", [](Request&, ResponseWriter& res) { res.error(418, "short"); });
  router.handle("GET /not-modified", [](Request&, ResponseWriter& res) {
    res.status(304);
    (void)res.write("dropped");
  });
  router.handle("GET /streamed", [](Request&, ResponseWriter& res) {
    for (int i = 0; i < 10; ++i) (void)res.write(std::string(10'000, 's'));
  });
  router.handle("GET /throws", [](Request&, ResponseWriter& res) {
    res.status(201);
    throw std::runtime_error("on purpose");
  });
  router.handle("GET /throws-late", [](Request&, ResponseWriter& res) {
    (void)res.write("half");
    (void)res.flush();
    throw std::runtime_error("on purpose");
  });
  router.handle("GET /goexit", [](Request&, ResponseWriter&) { goexit(); });
  router.handle("POST /reads", [](Request& req, ResponseWriter& res) {
    if (req.body()) res.text("read");
  });
  return router;
}

TEST_P(MiddlewareTest, SeesWhatTheClientGets) {
  run_with(GetParam(), [] {
    std::vector<Seen> all;
    Mutex mutex;
    ServerOptions options;
    options.body_bytes_max = 100;
    {
      TestServer server(with(all_kinds(), recorder(all, mutex)), options);
      const struct {
        std::string request;
        int status;  // on the wire; 0: no whole response
        Seen seen;
      } cases[] = {
          {get("/"), 200, {200, 13}},
          {"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", 200, {200, 0}},
          {get("/empty"), 200, {200, 0}},
          {get("/teapot"), 418, {418, 5}},
          {get("/not-modified"), 304, {304, 0}},
          {get("/streamed"), 200, {200, 100'000}},
          {get("/nowhere"), 404, {404, 10}},
          {get("/throws"), 500, {500, 0}},
          {get("/throws-late"), 0, {200, 4}},
          {get("/goexit"), 0, {0, 0}},
          {"POST /reads HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, {400, 0}},
      };
      for (const auto& one : cases) {
        {
          const std::scoped_lock lock(mutex);
          all.clear();
        }
        const bool head = one.request.starts_with("HEAD");
        EXPECT_EQ(fetch(server.address(), one.request, head).status, one.status) << one.request;
        // The answer may come before middleware has returned.
        tuza::testing::yield_until([&] {
          const std::scoped_lock lock(mutex);
          return !all.empty();
        });
        const std::scoped_lock lock(mutex);
        EXPECT_EQ(all.front(), one.seen) << one.request;
      }
      EXPECT_EQ(server.server().stats().handlers_thrown, 2u);
    }
  });
}

TEST_P(MiddlewareTest, TheFirstIsTheOutermost) {
  run_with(GetParam(), [] {
    std::string order;
    const auto named = [&order](char in, char out) -> Middleware {
      return [&order, in, out](Handler next) -> Handler {
        return [&order, in, out, next = std::move(next)](Request& req, ResponseWriter& res) {
          order += in;
          next(req, res);
          order += out;
        };
      };
    };
    Handler handler = with([&order](Request&, ResponseWriter&) { order += '.'; }, named('a', 'A'),
                           named('b', 'B'), named('c', 'C'));
    {
      TestServer server(std::move(handler));
      EXPECT_EQ(fetch(server.address(), get("/")).status, 200);
    }
    EXPECT_EQ(order, "abc.CBA");
  });
}

// A page of another origin sees a network error instead of a status without the fields of CORS.
TEST_P(MiddlewareTest, ItsFieldsAreOnEveryAnswerMadeBehindIt) {
  const Folder folder;
  run_with(GetParam(), [&] {
    const auto tags = [](Handler next) -> Handler {
      return [next = std::move(next)](Request& req, ResponseWriter& res) {
        res.set_header("X-Request-Id", "7");
        res.add_header("Vary", "Origin");
        res.set_header("Cache-Control", "max-age=3600");
        res.set_header("Content-Type", "application/json");
        next(req, res);
      };
    };
    Router router = all_kinds();
    router.handle("/files/", FileServer(folder.root().string(), {.prefix = "/files/"}));
    router.handle("/status", [](Request&, ResponseWriter&) { throw StatusError(409, "thrown"); });
    router.handle("/closed/{$}", [](Request&, ResponseWriter& res) { res.error(401); });
    ServerOptions options;
    options.body_bytes_max = 100;
    options.body_timeout = 20ms;
    TestServer server(with(std::move(router), tags), options);
    const std::string chunked = " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    const struct {
      std::string request;
      int status;
    } cases[] = {
        {get("/teapot"), 418},
        {get("/nowhere"), 404},
        {get("/closed"), 307},
        {get("/closed/"), 401},
        {post("/empty", ""), 405},
        {get("/files/"), 404},
        {post("/files/x", ""), 405},
        {get("/files/dir"), 301},
        {ask("/files/a.txt", "If-Match: \"x\"\r\n"), 412},
        {ask("/files/a.txt", "Range: bytes=99-\r\n"), 416},
        {get("/throws"), 500},
        {get("/status"), 409},
        {"POST /reads" + chunked + "zz\r\n", 400},
        {"POST /reads" + chunked + "65\r\n" + std::string(101, 'x') + "\r\n0\r\n\r\n", 413},
        {"POST /reads HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n", 413},
        {"POST /reads HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\nExpect: 100-continue\r\n\r\n", 413},
        {"POST /reads HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf", 408},
    };
    for (const auto& one : cases) {
      const Response r = fetch(server.address(), one.request);
      EXPECT_EQ(r.status, one.status) << one.request;
      EXPECT_EQ(r.header("x-request-id"), "7") << one.request;
      EXPECT_EQ(r.header("vary"), "Origin") << one.request;
      EXPECT_EQ(r.header("content-type"), "text/plain; charset=utf-8") << one.request;
      EXPECT_EQ(r.headers.count("content-type"), 1u) << one.request;
      EXPECT_FALSE(r.has("cache-control")) << one.request;
      EXPECT_EQ(r.has("allow"), one.status == 405) << one.request;
    }
    // Nothing ran before these.
    EXPECT_FALSE(fetch(server.address(), "GET / HTTP/1.1\r\n\r\n").has("x-request-id"));
  });
}

// By its Content-Length, before anything of it has been read.
TEST(TooLargeTest, MiddlewareOfEveryKindSeesItAndNoHandlerOfARouter) {
  std::string seen;
  const auto noting = [&seen](const char* name) -> Middleware {
    return [&seen, name](Handler next) -> Handler {
      return [&seen, name, next = std::move(next)](Request& req, ResponseWriter& res) {
        res.set_header("X-Seen", "yes");
        observe(next, req, res, [&](int status) { seen += name + std::to_string(status) + " "; });
      };
    };
  };
  const Handler handler = [&seen](Request& req, ResponseWriter& res) {
    seen += "handler ";
    if (req.body()) res.text("read");
  };
  Router inner;
  inner.use(noting("inner"));
  inner.handle("/x", [&](Request& req, ResponseWriter& res) { handler(req, res); });
  Router router;
  router.use(noting("router"));
  router.handle("/x", [&](Request& req, ResponseWriter& res) { handler(req, res); });
  RouteGroup group = router.group("/group");
  group.use(noting("group"));
  group.handle("/x", [&](Request& req, ResponseWriter& res) { handler(req, res); });
  router.mount("/mount", std::move(inner));
  router.mount("/plain", [&](Request& req, ResponseWriter& res) { handler(req, res); });
  const Handler all = with(std::move(router), noting("with"));
  CallOptions options{.body = "123456"};
  options.server.body_bytes_max = 5;
  const auto ask = [&](const char* path) {
    seen.clear();
    const CallResult res = call(all, std::string("POST ") + path, options);
    EXPECT_EQ(res.status, 413) << path;
    EXPECT_EQ(res.body, "request body too large\n");
    EXPECT_EQ(res.header("X-Seen"), "yes");
    EXPECT_TRUE(res.closes);
    return seen;
  };
  EXPECT_EQ(ask("/x"), "router413 with413 ");
  EXPECT_EQ(ask("/group/x"), "group413 router413 with413 ");
  EXPECT_EQ(ask("/mount/x"), "inner413 router413 with413 ");
  EXPECT_EQ(ask("/plain/x"), "handler router413 with413 ") << "it cannot read the body";
}

TEST_P(MiddlewareTest, TheServerCountsWhatNoHandlerSees) {
  run_with(GetParam(), [] {
    ServerOptions options;
    options.header_timeout = 500ms;  // requests that come whole do so within it, on a busy machine, too
    options.idle_timeout = 500ms;
    options.body_timeout = 500ms;
    options.body_bytes_max = 100;
    options.request_line_bytes_max = 100;
    TestServer server(all_kinds(), options);
    const auto status = [&](std::string_view request) { return fetch(server.address(), request).status; };
    EXPECT_EQ(status("GET / HTTP/1.1\r\n\r\n"), 400);  // no Host
    EXPECT_EQ(status("GET / HTT"), 408);
    EXPECT_EQ(status("POST /reads HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf"), 408);
    EXPECT_EQ(status("POST /reads HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n"), 413);
    EXPECT_EQ(status(get("/" + std::string(200, 'a'))), 414);
    EXPECT_EQ(status("BREW / HTTP/1.1\r\nHost: a\r\n\r\n"), 501);
    RawClient silent(server.address());
    silent.read_until_closed();
    tuza::testing::yield_until([&] { return server.server().stats().open == 0; });

    const ServerStats stats = server.server().stats();
    EXPECT_EQ(stats.accepted, 7u);
    const std::array<std::uint64_t, kRefusedStatuses.size()> refused{1, 2, 1, 1, 0, 0, 0, 1, 0, 0};
    EXPECT_EQ(stats.refused, refused);
    EXPECT_EQ(stats.idle_timeouts, 1u);
    EXPECT_EQ(stats.header_timeouts, 1u);
    EXPECT_EQ(stats.body_timeouts, 1u);
    EXPECT_EQ(stats.write_timeouts, 0u);
    EXPECT_EQ(stats.handlers_thrown, 0u);
  });
}

TEST_P(MiddlewareTest, FailuresOfTlsAreCounted) {
  net::testing::Authority authority;
  const net::TlsCertificate site = authority.issue("site");
  run_with(GetParam(), [&] {
    ServerOptions options;
    options.idle_timeout = 60s;
    TestServer server(all_kinds(), options,
                      net::TlsServer::load({.certificates = {site}, .handshake_timeout = 2s}).value());
    RawClient silent(server.address());
    silent.read_until_closed();
    RawClient garbage(server.address());
    garbage.send("GET / HTTP/1.1\r\n\r\n");
    garbage.read_until_closed();
    {
      RawClient goes_away(server.address());
    }
    const auto stranger = net::TlsClient::load({.server_name = "localhost"}).value();
    EXPECT_FALSE(stranger->dial("tcp", server.address())) << "it does not know who has signed";
    // Invalid TLS records: in place of bodies, and in place of what the server expects when it ends.
    const std::string_view garbage_record("\x17\x02\x00\x00\x05hello", 10);
    const auto client =
        net::TlsClient::load({.ca_file = authority.file(), .server_name = "localhost"}).value();
    for (const char* length : {"Content-Length: 9", "Transfer-Encoding: chunked"}) {
      RawClient breaks(client->dial("tcp", server.address()).value());
      breaks.send("POST /reads HTTP/1.1\r\nHost: a\r\n" + std::string(length) + "\r\n\r\n");
      EXPECT_TRUE(net::detail::ConnParts::descriptor(breaks.conn())
                      .write_all(std::as_bytes(std::span(garbage_record))));
      breaks.read_until_closed();
    }
    tuza::testing::yield_until([&] { return server.server().stats().open == 0; });
    EXPECT_EQ(server.server().stats().tls_failures, 4u);
    RawClient late(server.address());
    tuza::testing::yield_until([&] { return server.server().stats().open == 1; });
    late.send("GET / HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(server.server().shutdown());

    const ServerStats stats = server.server().stats();
    EXPECT_EQ(stats.handshake_timeouts, 1u);
    EXPECT_EQ(stats.tls_failures, 5u);
    EXPECT_EQ(stats.idle_timeouts, 0u);
  });
}

TEST_P(MiddlewareTest, AClientThatDoesNotReadIsCounted) {
  run_with(GetParam(), [] {
    ServerOptions options;
    options.write_timeout = 50ms;
    Router router;
    const std::string large(64 << 20, 'l');
    router.handle("GET /large", [&](Request&, ResponseWriter& res) { res.text(large); });
    TestServer server(std::move(router), options);
    RawClient client(server.address());
    client.send(get("/large"));
    tuza::testing::yield_until([&] { return server.server().stats().write_timeouts > 0; });
    tuza::testing::yield_until([&] { return server.server().connections() == 0; });
    EXPECT_EQ(server.server().stats().write_timeouts, 1u);
  });
}

}  // namespace
}  // namespace tuza::http::testing
