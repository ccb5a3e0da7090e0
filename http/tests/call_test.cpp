// Calls of handlers without a socket: what they see and what is seen of them is what a connection would show.
#include <tuza/http/file_server.h>
#include <tuza/http/middleware.h>
#include <tuza/http/middleware/recover.h>
#include <tuza/http/testing.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/sched/try.h>

#include <cerrno>
#include <stdexcept>

namespace tuza::http::testing {
namespace {

Router items() {
  Router router;
  router.handle("GET /items/{id}", [](Request& req, ResponseWriter& res) {
    res.set_header("X-Id", req.path_value<std::string_view>("id"));
    res.text("item " + req.path_value<std::string>("id") + "\n");
  });
  router.handle("POST /echo", [](Request& req, ResponseWriter& res) {
    const auto body = req.body();
    if (body) res.send(req.header("Content-Type").value_or("text/plain"), *body);
  });
  router.handle("GET /stream", [](Request&, ResponseWriter& res) {
    for (int i = 0; i < 3; ++i) (void)res.write(std::string(9000, 'x'));
  });
  router.handle("GET /flushed", [](Request&, ResponseWriter& res) {
    (void)res.write("one");
    (void)res.flush();
    (void)res.write("two");
  });
  router.handle("GET /promises", [](Request&, ResponseWriter& res) {
    res.set_header("Content-Length", "10");
    (void)res.write("short");
  });
  router.handle("GET /throws", [](Request&, ResponseWriter&) { throw std::runtime_error("on purpose"); });
  router.handle("GET /throws-late", [](Request&, ResponseWriter& res) {
    (void)res.write("half");
    (void)res.flush();
    throw std::runtime_error("on purpose");
  });
  router.handle("GET /empty", [](Request&, ResponseWriter& res) { res.status(204); });
  router.handle("GET /who", [](Request& req, ResponseWriter& res) {
    res.text(std::string(req.remote()) + " " + (req.tls_info() ? req.tls_info()->version : "plain"));
  });
  return router;
}

TEST(CallTest, AnErrorThatAHandlerReturnsIsAnswered) {
  const Handler handler = [](Request& req, ResponseWriter& res) -> Result<void> {
    if (req.path() == "/late") {
      TUZA_TRY(res.write("half"));
      TUZA_TRY(res.flush());
    }
    if (req.path() != "/") return std::unexpected(Error::from_errno(ENOENT, "open", "notes"));
    res.text("whole");
    return {};
  };
  EXPECT_EQ(call(handler, "GET /").body, "whole");
  const CallResult failed = call(handler, "GET /notes");
  EXPECT_EQ(failed.status, 500);
  EXPECT_EQ(failed.body, "Internal Server Error\n") << "what failed is for the log";
  EXPECT_NE(failed.exception, nullptr);
  EXPECT_FALSE(call(handler, "GET /late").complete);
  // The server answers for a body that cannot be read.
  const Handler reads = [](Request& req, ResponseWriter& res) -> Result<void> {
    TUZA_TRY(const std::string_view body, req.body());
    res.text(body);
    return {};
  };
  EXPECT_EQ(call(reads, "POST /", {.body = "fine"}).body, "fine");
  const CallResult too_large =
      call(reads, "POST /", {.body = "too large", .chunked = true, .server = {.body_bytes_max = 3}});
  EXPECT_EQ(too_large.status, 413);
  EXPECT_EQ(too_large.exception, nullptr);
  Router recovering;
  recovering.use(recover({}));
  recovering.handle("POST /", [](Request& req, ResponseWriter&) { (void)req.body().value(); });
  EXPECT_EQ(call(recovering, "POST /", {.body = "large", .server = {.body_bytes_max = 3}}).status, 413);
  EXPECT_EQ(
      call(recovering, "POST /", {.body = "large", .chunked = true, .server = {.body_bytes_max = 3}}).status,
      413);
  // The value of a Result is still nothing to a Handler.
  EXPECT_EQ(call([](Request&, ResponseWriter&) -> Result<int> { return 1; }, "GET /").status, 200);
}

TEST(CallTest, ShowsStatusFieldsAndBody) {
  const Router router = items();
  const CallResult res = call(router, "GET /items/7");
  EXPECT_EQ(res.status, 200);
  EXPECT_EQ(res.body, "item 7\n");
  EXPECT_EQ(res.header("x-id"), "7");
  EXPECT_EQ(res.header("Content-Type"), "text/plain; charset=utf-8");
  EXPECT_EQ(res.header("Content-Length"), "7");
  EXPECT_FALSE(res.streamed || res.closes);
  EXPECT_TRUE(res.complete);
  EXPECT_EQ(call(router, "GET /nowhere").status, 404);
  const CallResult refused = call(router, "DELETE /items/7");
  EXPECT_EQ(refused.status, 405);
  EXPECT_EQ(refused.header("Allow"), "GET, HEAD, OPTIONS");
  const CallResult head = call(router, "HEAD /items/7");
  EXPECT_EQ(head.body, "");
  EXPECT_EQ(head.header("Content-Length"), "7");
  const CallResult empty = call(router, "GET /empty");
  EXPECT_EQ(empty.status, 204);
  EXPECT_TRUE(empty.headers.empty());
}

TEST(CallTest, BodiesArriveWithAndWithoutLength) {
  const Router router = items();
  for (const bool chunked : {false, true}) {
    const CallResult res = call(
        router, "POST /echo",
        {.headers = {{"Content-Type", "text/csv"}}, .body = std::string(40'000, 'b'), .chunked = chunked});
    EXPECT_EQ(res.status, 200);
    EXPECT_EQ(res.body, std::string(40'000, 'b'));
    EXPECT_EQ(res.header("Content-Type"), "text/csv");
    ServerOptions small;
    small.body_bytes_max = 10;
    EXPECT_EQ(
        call(router, "POST /echo", {.body = "eleven bytes", .chunked = chunked, .server = small}).status,
        413);
  }
  EXPECT_EQ(call(router, "POST /echo").body, "");
}

TEST(CallTest, RefusesWhatTheServerRefuses) {
  const Router router = items();
  EXPECT_EQ(call(router, "GET items").status, 400);
  EXPECT_EQ(call(router, "BREW /").status, 501);
  EXPECT_EQ(call(router, "GET https://a/").status, 421);
  EXPECT_EQ(call(router, "HEAD /", {.headers = {{"Expect", "x"}}}).body, "");
  EXPECT_TRUE(call(router, "GET /items/7", {.headers = {{"Connection", "close"}}}).closes);
  EXPECT_EQ(call(router, "GET /", {.headers = {{"Bad Name", "x"}}}).status, 400);
  EXPECT_EQ(call(router, "GET /", {.headers = {{"A", "x\r\nB: y\r\n\r\nGET /"}}}).status, 400);
  EXPECT_EQ(call(router, "GET /" + std::string(9000, 'a')).status, 414);
}

TEST(CallTest, StreamsAndBrokenAnswersAreSeen) {
  const Router router = items();
  const CallResult streamed = call(router, "GET /stream");
  EXPECT_TRUE(streamed.streamed);
  EXPECT_EQ(streamed.body.size(), 27'000u);
  EXPECT_EQ(streamed.header("Content-Length"), std::nullopt);
  EXPECT_EQ(call(router, "GET /flushed").body, "onetwo");
  const CallResult promises = call(router, "GET /promises");
  EXPECT_FALSE(promises.complete);
  EXPECT_TRUE(promises.closes);
  EXPECT_EQ(promises.header("Content-Length"), "10");
}

TEST(CallTest, ExceptionsAreWhatTheClientGetsAndCanBeLookedAt) {
  const Router router = items();
  const CallResult thrown = call(router, "GET /throws");
  EXPECT_EQ(thrown.status, 500);
  EXPECT_EQ(thrown.body, "Internal Server Error\n");
  EXPECT_TRUE(thrown.closes);
  ASSERT_NE(thrown.exception, nullptr);
  EXPECT_THROW(std::rethrow_exception(thrown.exception), std::runtime_error);
  const CallResult late = call(router, "GET /throws-late");
  EXPECT_EQ(late.status, 200);
  EXPECT_EQ(late.body, "half");
  EXPECT_FALSE(late.complete);
  EXPECT_NE(late.exception, nullptr);
}

TEST(CallTest, PeerTlsAndContextAreOptions) {
  const Router router = items();
  EXPECT_EQ(call(router, "GET /who").body, "192.0.2.1:1234 plain");
  CallOptions options;
  options.peer = net::parse_endpoint("[::1]:99").value();
  options.tls.emplace().version = "TLSv1.3";
  EXPECT_EQ(call(router, "GET /who", options).body, "[::1]:99 TLSv1.3");

  Context kept;
  const auto handler = [&kept](Request& req, ResponseWriter& res) {
    kept = req.context();
    res.text(kept.done() ? "ended" : "alive");
  };
  auto [ctx, cancel] = with_cancel(Context::background());
  EXPECT_EQ(call(handler, "GET /", {.context = ctx}).body, "alive");
  EXPECT_TRUE(kept.done()) << "it ends with the request";
  cancel();
  EXPECT_EQ(call(handler, "GET /", {.context = ctx}).body, "ended");
}

TEST(CallTest, MiddlewareIsCalledToo) {
  int status = 0;
  const Handler handler = with(items(), [&status](Handler next) -> Handler {
    return [&status, next = std::move(next)](Request& req, ResponseWriter& res) {
      observe(next, req, res, [&status](int code) { status = code; });
    };
  });
  EXPECT_EQ(call(handler, "GET /throws").status, 500);
  EXPECT_EQ(status, 500);
  EXPECT_EQ(call(handler, "GET /items/1").status, 200);
  EXPECT_EQ(status, 200);
}

}  // namespace
}  // namespace tuza::http::testing
