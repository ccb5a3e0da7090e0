// CORS and the protection against forged requests.
#include <tuza/http/middleware/cors.h>
#include <tuza/http/middleware/csrf.h>
#include <tuza/http/router.h>
#include <tuza/http/testing.h>

#include <gtest/gtest.h>

#include <stdexcept>

namespace tuza::http::testing {
namespace {

void handled(Request&, ResponseWriter& res) { res.text("handled"); }

CallResult preflight(const Handler& handler, std::string origin, std::string method, HeaderFields more = {}) {
  HeaderFields fields{{"Origin", std::move(origin)}, {"Access-Control-Request-Method", std::move(method)}};
  fields.insert(fields.end(), more.begin(), more.end());
  return call(handler, "OPTIONS /x", {.headers = std::move(fields)});
}

TEST(CorsTest, AnswersPreflightsOfListedOrigins) {
  const Handler handler = with(handled, cors({.origins = {"https://a.example"},
                                              .methods = {"GET", "PUT"},
                                              .headers = {"X-One", "X-Two"},
                                              .credentials = true}));
  const CallResult yes =
      preflight(handler, "https://a.example", "PUT", {{"Access-Control-Request-Headers", "x-two,X-ONE"}});
  EXPECT_EQ(yes.status, 204);
  EXPECT_EQ(yes.header("Access-Control-Allow-Origin"), "https://a.example");
  EXPECT_EQ(yes.header("Access-Control-Allow-Credentials"), "true");
  EXPECT_EQ(yes.header("Access-Control-Allow-Methods"), "GET, PUT");
  EXPECT_EQ(yes.header("Access-Control-Allow-Headers"), "X-One, X-Two");
  EXPECT_EQ(yes.header("Access-Control-Max-Age"), "600");
  EXPECT_TRUE(yes.header("Vary").value_or("").contains("Origin"));
  const CallResult refusals[] = {
      preflight(handler, "https://b.example", "PUT"),
      preflight(handler, "https://A.example", "PUT"),
      preflight(handler, "http://a.example", "PUT"),
      preflight(handler, "null", "PUT"),
      preflight(handler, "https://a.example", "DELETE"),
      preflight(handler, "https://a.example", "put"),
      preflight(handler, "https://a.example", "PUT", {{"Access-Control-Request-Headers", "x-one, x-three"}}),
      preflight(handler, "https://a.example", "PUT", {{"Access-Control-Request-Private-Network", "true"}}),
  };
  for (const CallResult& no : refusals) {
    EXPECT_EQ(no.status, 204);
    EXPECT_FALSE(no.header("Access-Control-Allow-Origin"));
    EXPECT_TRUE(no.header("Vary"));
  }
  EXPECT_EQ(call(handler, "OPTIONS /x").body, "handled");  // no preflight
}

TEST(CorsTest, MarksOtherResponses) {
  const Handler handler = with(
      handled, cors({.origins = {"https://a.example"}, .exposed = {"X-Total"}, .private_network = true}));
  const CallResult yes = call(handler, "GET /", {.headers = {{"Origin", "https://a.example"}}});
  EXPECT_EQ(yes.body, "handled");
  EXPECT_EQ(yes.header("Access-Control-Allow-Origin"), "https://a.example");
  EXPECT_EQ(yes.header("Access-Control-Expose-Headers"), "X-Total");
  EXPECT_EQ(yes.header("Vary"), "Origin");
  for (const HeaderFields& fields : {HeaderFields{{"Origin", "https://b.example"}}, HeaderFields{}}) {
    const CallResult no = call(handler, "GET /", {.headers = fields});
    EXPECT_EQ(no.body, "handled");
    EXPECT_FALSE(no.header("Access-Control-Allow-Origin"));
    EXPECT_EQ(no.header("Vary"), "Origin");
  }
  const auto varies = [](Request&, ResponseWriter& res) {
    res.set_header("Vary", "Accept, origin");
    res.set_header("Vary", "Accept, Cookie");
    res.text("");
  };
  EXPECT_EQ(call(with(varies, cors({.origins = {"https://a.example"}})), "GET /").header("Vary"),
            "Accept, Cookie, origin");
  EXPECT_EQ(
      preflight(handler, "https://a.example", "GET", {{"Access-Control-Request-Private-Network", "true"}})
          .header("Access-Control-Allow-Private-Network"),
      "true");
}

TEST(CorsTest, AnyOriginIsWithoutCredentials) {
  const Handler handler = with(handled, cors({.origins = {"*"}, .headers = {"*"}}));
  const CallResult yes = call(handler, "GET /", {.headers = {{"Origin", "https://b.example"}}});
  EXPECT_EQ(yes.header("Access-Control-Allow-Origin"), "*");
  EXPECT_FALSE(yes.header("Vary") || yes.header("Access-Control-Allow-Credentials"));
  EXPECT_EQ(preflight(handler, "https://b.example", "GET", {{"Access-Control-Request-Headers", "x-any"}})
                .header("Access-Control-Allow-Headers"),
            "x-any");
  EXPECT_THROW((void)cors({.origins = {"*"}, .credentials = true})(handled), std::invalid_argument);
  EXPECT_THROW((void)cors({.methods = {"GET, PUT"}})(handled), std::invalid_argument);
  EXPECT_THROW((void)cors({.headers = {"a\r\nb"}})(handled), std::invalid_argument);
  const Handler asked =
      with(handled, cors({.allow_origin = [](std::string_view o) { return o.ends_with(".example"); }}));
  EXPECT_TRUE(call(asked, "GET /", {.headers = {{"Origin", "https://c.example"}}})
                  .header("Access-Control-Allow-Origin"));
}

// The table of Go 1.25's TestCrossOriginProtectionSecFetchSite and ...OriginFallback.
TEST(CsrfTest, FollowsTheRulesOfGo) {
  const Handler handler = with(handled, csrf());
  const struct {
    const char* request;
    const char* site;    // null: no field
    const char* origin;  // null: no field
    int status;
  } cases[] = {
      {"POST /", "same-origin", nullptr, 200},
      {"POST /", "none", nullptr, 200},
      {"POST /", "cross-site", nullptr, 403},
      {"POST /", "same-site", nullptr, 403},
      {"POST /", nullptr, nullptr, 200},
      {"POST /", nullptr, "https://example.com", 200},
      {"POST /", nullptr, "http://example.com", 200},
      {"POST /", nullptr, "https://EXAMPLE.com", 200},
      {"POST /", nullptr, "https://attacker.example", 403},
      {"POST /", nullptr, "https://example.com:8443", 403},
      {"POST /", nullptr, "null", 403},
      {"POST /", nullptr, "https://example.com/x", 403},
      {"POST /", "same-origin", "https://attacker.example", 200},
      {"GET /", "cross-site", nullptr, 200},
      {"HEAD /", "cross-site", nullptr, 200},
      {"OPTIONS /", "cross-site", nullptr, 200},
      {"PUT /", "cross-site", nullptr, 403},
      {"DELETE /", "cross-site", "https://example.com", 403},
  };
  for (const auto& one : cases) {
    HeaderFields fields;
    if (one.site != nullptr) fields.emplace_back("Sec-Fetch-Site", one.site);
    if (one.origin != nullptr) fields.emplace_back("Origin", one.origin);
    EXPECT_EQ(call(handler, one.request, {.headers = fields}).status, one.status)
        << one.request << " " << (one.site ? one.site : "-") << " " << (one.origin ? one.origin : "-");
  }
}

TEST(CsrfTest, TrustsOriginsAndBypasses) {
  Router router;
  router.handle("POST /hooks/{name}",
                [](Request& req, ResponseWriter& res) { res.text(req.path_value<std::string>("name")); });
  router.handle("/", handled);
  router.use(csrf({.trusted_origins = {"https://admin.example"}, .bypass = {"POST /hooks/{any}", "/open/"}}));
  const auto answer = [&](const char* request, const char* origin) {
    return call(router, request, {.headers = {{"Sec-Fetch-Site", "cross-site"}, {"Origin", origin}}});
  };
  EXPECT_EQ(answer("POST /", "https://admin.example").status, 200);
  EXPECT_EQ(answer("POST /", "http://admin.example").status, 403);
  EXPECT_EQ(answer("POST /hooks/a", "https://b.example").body, "a");
  EXPECT_EQ(answer("PUT /hooks/a", "https://b.example").status, 403);
  EXPECT_EQ(answer("POST /open/a", "https://b.example").status, 200);
  for (const char* redirected :
       {"/open", "/open/../hooks/a", "/open/%2e%2E/private", "/open//a", "//hooks/a"}) {
    EXPECT_EQ(answer(("POST " + std::string(redirected)).c_str(), "https://b.example").status, 403)
        << redirected;
  }
}

TEST(CsrfTest, ABypassExemptsNoOtherRoute) {
  Router router;
  for (const char* route : {"POST /hooks/{name}", "POST /hooks/admin", "/", "/all/", "POST /all/of/it"}) {
    router.handle(route, handled);
  }
  const CallOptions cross_site{.headers = {{"Sec-Fetch-Site", "cross-site"}}};
  router.use(csrf({.bypass = {"POST /hooks/{any}", "/all/", "/part/"}}));
  EXPECT_EQ(call(router, "POST /hooks/a", cross_site).status, 200);
  EXPECT_EQ(call(router, "POST /hooks/admin", cross_site).status, 403);
  EXPECT_EQ(call(router, "POST /hooks/%61dmin", cross_site).status, 403);
  EXPECT_EQ(call(router, "POST /all/of/it", cross_site).status, 200) << "all that is below";
  EXPECT_EQ(call(router, "POST /part/x", cross_site).status, 200) << "a part of what a route answers";
  // Without a router in front of it, dots would reach the handler as they are.
  EXPECT_EQ(call(with(handled, csrf({.bypass = {"/open/"}})), "POST /open/../x", cross_site).status, 403);
}

TEST(CsrfTest, ABypassWithANameNeedsItsRoute) {
  const auto routes = [] {
    Router router;
    router.handle("POST /hooks/{name}", handled);
    router.handle("POST /hooks/admin", handled);
    return router;
  };
  const auto protection = [] {
    return csrf({.bypass = {"POST /hooks/{any}", "/api/hooks/{any}", "/api/hooks/x"}});
  };
  const CallOptions cross_site{.headers = {{"Sec-Fetch-Site", "cross-site"}}};
  EXPECT_EQ(call(with(routes(), protection()), "POST /hooks/admin", cross_site).status, 403)
      << "nobody knows the route yet";
  Router outer;
  outer.mount("/api", routes());
  outer.use(protection());
  EXPECT_EQ(call(outer, "POST /api/hooks/admin", cross_site).status, 403) << "a route of the inner router";
  EXPECT_EQ(call(outer, "POST /api/hooks/x", cross_site).status, 200) << "no other path is meant";
}

TEST(OriginsTest, AreSuchAsBrowsersSend) {
  for (const char* good : {"https://a.example", "http://a.example:8080", "http://[2001:db8::1]:8001",
                           "https://a.example:80", "chrome-extension://abc", "http://localhost"}) {
    EXPECT_NO_THROW((void)cors({.origins = {good}})) << good;
    EXPECT_NO_THROW((void)csrf({.trusted_origins = {good}})) << good;
  }
  for (const char* bad : {"https://a.example/", "a.example", "https://*.example", "HTTPS://a.example",
                          "https://A.example", "https://a.example:443", "http://a.example:80",
                          "https://a.example:x", "https://a.example:", "https://a.example:080", "https://",
                          "https://user@a.example", "://a", "http://a:b:1"}) {
    EXPECT_THROW((void)cors({.origins = {bad}}), std::invalid_argument) << bad;
    EXPECT_THROW((void)csrf({.trusted_origins = {bad}}), std::invalid_argument) << bad;
  }
  EXPECT_NO_THROW((void)cors({.origins = {"*"}}));
  EXPECT_THROW((void)cors({.origins = {"https://a.example"}, .exposed = {"*"}, .credentials = true}),
               std::invalid_argument);
}

TEST(CsrfTest, RefusesMalformedOptions) {
  EXPECT_THROW((void)csrf({.trusted_origins = {"example.com"}})(handled), std::invalid_argument);
  EXPECT_THROW((void)csrf({.trusted_origins = {"https://example.com/"}})(handled), std::invalid_argument);
  EXPECT_THROW((void)csrf({.bypass = {"no path"}})(handled), std::invalid_argument);
  const Handler custom =
      with(handled, csrf({.refused = [](Request&, ResponseWriter& res) { res.text(418, "no"); }}));
  EXPECT_EQ(call(custom, "POST /", {.headers = {{"Sec-Fetch-Site", "cross-site"}}}).status, 418);
}

}  // namespace
}  // namespace tuza::http::testing
