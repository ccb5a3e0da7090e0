// before_head(): middleware changes the head of every kind of response, once.
#include <tuza/http/key.h>
#include <tuza/http/middleware.h>
#include <tuza/http/middleware/compress.h>
#include <tuza/http/router.h>
#include <tuza/http/testing.h>
#include <tuza/http/testing_server.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/sched/goroutine.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <utility>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;

const std::string kLargeText(100'000, 'x');

// Says how often it was called, and what the handler had set by then.
Middleware stamp(std::atomic<int>& calls) {
  return [&calls](Handler next) -> Handler {
    return [&calls, next = std::move(next)](Request& req, ResponseWriter& res) {
      before_head(next, req, res, [&](ResponseWriter& last) {
        ++calls;
        EXPECT_EQ(&last, &res);
        last.set_header("Stamp",
                        std::to_string(last.status_code()) + std::string(last.header("From").value_or("-")));
        last.remove_header("Secret");
      });
    };
  };
}

Router hooked_kinds() {
  Router router;
  const auto from = [](ResponseWriter& res, std::string_view name) {
    res.set_header("From", name);
    res.set_header("Secret", "s");
  };
  router.handle("/nothing", [](Request&, ResponseWriter&) {});
  router.handle("/text", [=](Request&, ResponseWriter& res) {
    from(res, "text");
    res.text(201, "a");
  });
  router.handle("/large", [=](Request&, ResponseWriter& res) {
    from(res, "large");
    res.text(kLargeText);
  });
  router.handle("/trailer", [=](Request&, ResponseWriter& res) {
    res.add_trailer("Sum", "1");
    res.text(kLargeText);
  });
  router.handle("/written", [=](Request&, ResponseWriter& res) {
    from(res, "written");
    EXPECT_TRUE(res.write("a"));
  });
  router.handle("/streamed", [=](Request&, ResponseWriter& res) {
    from(res, "streamed");
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(res.write(std::string(10'000, 'x')));
  });
  router.handle("/flushed", [=](Request&, ResponseWriter& res) {
    EXPECT_TRUE(res.flush());
    EXPECT_TRUE(res.write("a"));
  });
  router.handle("/status-error", [](Request&, ResponseWriter&) { throw StatusError(409, "no"); });
  router.handle("/throws", [](Request&, ResponseWriter&) { throw std::runtime_error("on purpose"); });
  router.handle("/throws-late", [](Request&, ResponseWriter& res) {
    EXPECT_TRUE(res.flush());
    throw std::runtime_error("on purpose");
  });
  return router;
}

struct HookCase {
  std::string path;
  int status;
  std::string stamp;
  std::size_t bytes;
};
const std::vector<HookCase> kCases = {{"/nothing", 200, "200-", 0},
                                      {"/text", 201, "201text", 1},
                                      {"/large", 200, "200large", kLargeText.size()},
                                      {"/trailer", 200, "200-", kLargeText.size()},
                                      {"/written", 200, "200written", 1},
                                      {"/streamed", 200, "200streamed", kLargeText.size()},
                                      {"/flushed", 200, "200-", 1},
                                      {"/status-error", 409, "200-", 3},
                                      {"/throws", 500, "200-", 22},
                                      {"/missing", 404, "404-", 10},
                                      {"//text", 307, "307-", 19}};

TEST(HeadHook, SeesAndChangesTheHeadOfEveryResponse) {
  for (const HookCase& one : kCases) {
    std::atomic<int> calls = 0;
    const CallResult res = call(with(hooked_kinds(), stamp(calls)), "GET " + one.path);
    EXPECT_EQ(res.status, one.status) << one.path;
    EXPECT_EQ(res.header("Stamp"), one.stamp) << one.path;
    EXPECT_EQ(res.body.size(), one.bytes) << one.path;
    EXPECT_FALSE(res.header("Secret")) << one.path;
    EXPECT_TRUE(res.complete) << one.path;
    EXPECT_EQ(calls, 1) << one.path;
  }
  std::atomic<int> calls = 0;
  EXPECT_FALSE(call(with(hooked_kinds(), stamp(calls)), "GET /throws-late").complete);
  EXPECT_EQ(calls, 1);
}

TEST(HeadHook, DoesTheSameOnAConnection) {
  run_with(2, [] {
    std::atomic<int> calls = 0;
    TestServer server(with(hooked_kinds(), stamp(calls)));
    for (const HookCase& one : kCases) {
      for (const char* method : {"GET", "HEAD"}) {
        calls = 0;
        const bool head = std::string_view(method) == "HEAD";
        const Response res = fetch(
            server.address(), std::string(method) + " " + one.path + " HTTP/1.1\r\nHost: a\r\n\r\n", head);
        EXPECT_EQ(res.status, one.status) << method << one.path;
        EXPECT_EQ(res.header("stamp"), one.stamp) << method << one.path;
        EXPECT_EQ(res.body.size(), head ? 0 : one.bytes) << method << one.path;
        EXPECT_EQ(calls, 1) << method << one.path;
      }
    }
  });
}

TEST(HeadHook, TheInnermostIsFirstAndCompressionSeesTheResult) {
  const auto add = [](std::string name) -> Middleware {
    return [name](Handler next) -> Handler {
      return [name, next = std::move(next)](Request& req, ResponseWriter& res) {
        before_head(next, req, res, [&](ResponseWriter& last) {
          last.set_header("Order", std::string(last.header("Order").value_or("")) + name);
          last.set_header("Content-Type", "text/plain");
        });
      };
    };
  };
  for (const char* path : {"GET /large", "GET /streamed", "GET /text"}) {
    const CallResult res = call(with(hooked_kinds(), add("a"), compress(), add("b"), add("c")), path,
                                {.headers = {{"Accept-Encoding", "gzip"}}});
    EXPECT_EQ(res.header("Order"), "cba") << path;
    EXPECT_EQ(res.header("Content-Encoding").has_value(), res.status == 200) << path;
  }
}

TEST(HeadHook, MayChangeTheStatusOrThrow) {
  const auto changed = [](std::string_view path, auto change) {
    const Handler inner = [router = hooked_kinds()](Request& req, ResponseWriter& res) { router(req, res); };
    return call([&](Request& req, ResponseWriter& res) { before_head(inner, req, res, change); }, path);
  };
  for (const char* path : {"GET /text", "GET /large", "GET /streamed"}) {
    const CallResult gone = changed(path, [](ResponseWriter& last) { last.status(204); });
    EXPECT_EQ(gone.status, 204) << path;
    EXPECT_EQ(gone.body, "") << path;
    EXPECT_TRUE(gone.complete) << path;
    const CallResult thrown = changed(path, [](ResponseWriter& last) { last.set_header("a b", ""); });
    EXPECT_EQ(thrown.status, 500) << path;
    EXPECT_TRUE(thrown.complete) << path;
  }
}

TEST(HeadHook, IsNotCalledForAGoroutineThatEndsOrAConnectionThatIsTakenOver) {
  run_with(2, [] {
    std::atomic<int> calls = 0;
    Router router;
    router.handle("/goexit", [](Request&, ResponseWriter&) { goexit(); });
    router.handle("/hijack", [](Request&, ResponseWriter& res) { (void)res.hijack(); });
    TestServer server(with(std::move(router), stamp(calls)));
    for (const char* path : {"/goexit", "/hijack"}) {
      (void)fetch(server.address(), "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n", false);
      EXPECT_EQ(calls, 0) << path;
    }
  });
}

}  // namespace
}  // namespace tuza::http::testing
