// The code of docs/guide/middleware.md.
#include <tuza/http.h>

#include <chrono>
#include <string>

namespace middleware_page {

namespace http = tuza::http;

void install(http::Router& router, const std::string& password) {
  //! [shipped]
  router.use(http::request_id());
  router.use(http::recover({.development = false}));
  router.use(http::secure_headers({.content_security_policy = "default-src 'self'"}));
  router.use(http::cors({.origins = {"https://app.example.com"}, .credentials = true}));
  router.use(http::rate_limit({.per_second = 20, .burst = 100}));
  router.use(http::compress());
  router.use(http::etag());

  auto api = router.group("/api");
  api.use(http::timeout(std::chrono::seconds(5)));
  api.use(http::body_limit(64 << 10));
  api.use(http::csrf());

  auto admin = router.group("/admin");
  admin.use(http::basic_auth({.realm = "admin", .users = {{"ada", password}}}));
  //! [shipped]
  admin.handle("GET /", [](http::Request&, http::ResponseWriter& res) { res.text("hello\n"); });
  api.handle("GET /items", [](http::Request&, http::ResponseWriter& res) { res.json("[]"); });
}

}  // namespace middleware_page
