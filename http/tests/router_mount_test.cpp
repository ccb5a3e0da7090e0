// Routers within routers: whose redirects, and at which paths.
#include <gtest/gtest.h>
#include <tuza/http/router.h>
#include <tuza/http/testing.h>
#include <tuza/http/tests/http_testing.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace tuza::http::testing {
namespace {

// Each router has its own redirects, and may see paths that the one around it has left as they are.
TEST(RouterMount, DotsMayLeadOutOfAMount) {
  Router inner;
  inner.handle("/tree/", saying("tree"));
  Router router;
  router.redirects({.to_clean_path = false});
  router.mount("/api", std::move(inner));
  const auto location = [&](const std::string& path) {
    const CallResult res = call(router, "GET " + path);
    EXPECT_EQ(res.status, 307) << path;
    return std::string(res.header("Location").value_or("none"));
  };
  EXPECT_EQ(location("/api/../api/tree/x"), "/api/tree/x");
  EXPECT_EQ(location("/api/../api/tree"), "/api/tree/");
  EXPECT_EQ(location("/api/%2e%2e/tree"), "/tree");
  EXPECT_EQ(location("/api/../apis/tree"), "/apis/tree");
  EXPECT_EQ(location("/api/./tree"), "/api/tree/");
}

TEST(RouterMount, ARouterAtTheRootOfAnother) {
  Router inner;
  inner.handle("GET /x/{id}", saying("inner"));
  Router router;
  router.handle("GET /x/1", saying("outer"));
  router.mount("/", std::move(inner));
  EXPECT_EQ(call(router, "GET /x/1").body, "outer");
  EXPECT_EQ(call(router, "GET /x/2").body, "inner");
  EXPECT_EQ(call(router, "GET /y").status, 404);
  EXPECT_EQ(call(router, "POST /x/2").status, 405);
  EXPECT_THROW(router.mount("/", saying("twice")), std::invalid_argument);
  EXPECT_THROW((void)router.group("/"), std::invalid_argument);
}

}  // namespace
}  // namespace tuza::http::testing
