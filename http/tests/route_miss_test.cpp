// Handlers that answer instead of the router's 404 and 405.
#include <tuza/http/router.h>
#include <tuza/http/status_error.h>
#include <tuza/http/testing.h>
#include <tuza/http/tests/http_testing.h>

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace tuza::http::testing {
namespace {

// "404 nothing here", and Allow if there is one.
std::string ask(const Router& router, std::string_view request, const CallOptions& options = {}) {
  const CallResult res = call(router, request, options);
  std::string text = std::to_string(res.status) + " " + res.body;
  if (const auto allow = res.header("Allow")) text.append(" [").append(*allow).append("]");
  return text;
}

TEST(RouteMiss, HandlersFindTheStatusSet) {
  Router router;
  router.handle("GET /a", saying("a"));
  router.not_found(saying("nothing here"));
  router.method_not_allowed(saying("not like this"));
  EXPECT_EQ(ask(router, "GET /a"), "200 a");
  EXPECT_EQ(ask(router, "GET /b"), "404 nothing here");
  EXPECT_EQ(ask(router, "GET /a/b/"), "404 nothing here");
  EXPECT_EQ(ask(router, "PUT /a"), "405 not like this [GET, HEAD, OPTIONS]");
  EXPECT_EQ(ask(router, "OPTIONS /a"), "204  [GET, HEAD, OPTIONS]") << "no error";
  EXPECT_EQ(ask(router, "OPTIONS *"), "204  [GET, HEAD, OPTIONS]");
  EXPECT_EQ(call(router, "GET //a").status, 307) << "redirects come first";
  EXPECT_EQ(call(router, "HEAD /b").status, 404);
}

TEST(RouteMiss, HandlersMayChooseAnotherStatus) {
  Router router;
  router.handle("GET /a", saying("a"));
  router.not_found([](Request&, ResponseWriter& res) { res.text(200, "the page"); });
  router.method_not_allowed([](Request&, ResponseWriter&) { throw StatusError(400, "use GET"); });
  EXPECT_EQ(ask(router, "GET /b"), "200 the page");
  EXPECT_EQ(ask(router, "PUT /a"), "400 use GET\n [GET, HEAD, OPTIONS]");
}

TEST(RouteMiss, EachHasItsText) {
  Router router;
  router.handle("GET /a", saying("a"));
  router.not_found(saying("nothing here"));
  EXPECT_EQ(ask(router, "PUT /a"), "405 Method Not Allowed\n [GET, HEAD, OPTIONS]");
  Router other;
  other.handle("GET /a", saying("a"));
  other.method_not_allowed(saying("not like this"));
  EXPECT_EQ(ask(other, "GET /b"), "404 Not Found\n");
}

TEST(RouteMiss, TheLongestPrefixAnswers) {
  Router router;
  RouteGroup api = router.group("/api");
  api.handle("GET /x", saying("x"));
  api.not_found(saying("api"));
  api.method_not_allowed(saying("api's methods"));
  api.group("/users/{id}").not_found([](Request& req, ResponseWriter& res) {
    res.text("user " + req.path_value<std::string>("id"));
  });
  EXPECT_EQ(ask(router, "GET /api"), "404 api");
  EXPECT_EQ(ask(router, "GET /api/"), "404 api");
  EXPECT_EQ(ask(router, "GET /%61pi/y/z"), "404 api");
  EXPECT_EQ(ask(router, "PUT /api/x"), "405 api's methods [GET, HEAD, OPTIONS]");
  EXPECT_EQ(ask(router, "GET /api/users"), "404 api");
  EXPECT_EQ(ask(router, "GET /api/users/7"), "404 user 7");
  EXPECT_EQ(ask(router, "GET /api/users/7/friends"), "404 user 7");
  EXPECT_EQ(ask(router, "GET /apis"), "404 Not Found\n");
  router.not_found(saying("all"));
  EXPECT_EQ(ask(router, "GET /apis"), "404 all");
  EXPECT_EQ(ask(router, "GET /api/y"), "404 api");
}

TEST(RouteMiss, MiddlewareIsAroundThem) {
  std::string seen;
  const auto noting = [&seen](std::string name) {
    return [&seen, name](Handler next) -> Handler {
      return [&seen, name, next = std::move(next)](Request& req, ResponseWriter& res) {
        seen += name + "(" + std::string(req.pattern()) + ")";
        next(req, res);
      };
    };
  };
  Router router;
  router.use(noting("router"));
  RouteGroup api = router.group("/api");
  api.use(noting("early"));
  api.not_found(saying("api"));
  api.use(noting("late"));
  router.not_found(saying("all"));
  EXPECT_EQ(ask(router, "GET /api/x") + " " + seen, "404 api router()early()");
  seen.clear();
  EXPECT_EQ(ask(router, "GET /x") + " " + seen, "404 all router()");
}

TEST(RouteMiss, AMountedRouterHasItsOwn) {
  Router inner;
  inner.handle("GET /a", saying("a"));
  Router other;
  other.not_found(saying("inner"));
  Router router;
  router.not_found(saying("outer"));
  router.mount("/plain", std::move(inner));
  router.mount("/own", std::move(other));
  EXPECT_EQ(ask(router, "GET /plain/b"), "404 Not Found\n");
  EXPECT_EQ(ask(router, "GET /own/b"), "404 inner");
  EXPECT_EQ(ask(router, "GET /b"), "404 outer");
}

TEST(RouteMiss, ABodyThatIsTooLargeIsStillRefused) {
  Router router;
  bool called = false;
  router.not_found([&called](Request&, ResponseWriter&) { called = true; });
  EXPECT_EQ(call(router, "POST /x", {.body = "12345", .server = {.body_bytes_max = 4}}).status, 413);
  EXPECT_FALSE(called);
}

TEST(RouteMiss, ASecondHandlerIsRefused) {
  Router router;
  router.not_found(saying("first"));
  try {
    router.not_found(saying("second"));
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_TRUE(std::string_view(error.what()).contains("route_miss_test.cpp:")) << error.what();
  }
  RouteGroup api = router.group("/api");
  api.method_not_allowed(saying("first"));
  EXPECT_THROW(api.method_not_allowed(saying("second")), std::invalid_argument);
  EXPECT_THROW(router.not_found({}), std::invalid_argument);
  api.use([](Handler next) { return next; });
  EXPECT_THROW(api.not_found({}), std::invalid_argument);
  EXPECT_THROW(api.handle("GET /x", {}), std::invalid_argument);
}

}  // namespace
}  // namespace tuza::http::testing
