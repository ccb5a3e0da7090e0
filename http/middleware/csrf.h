// Public header, part of <tuza/http.h>.
//
// Refuses requests that a page of another origin makes with the user's cookies: cross-site request forgery. No token is
// needed; browsers say where a request comes from. The rules are those of Go 1.25's http.CrossOriginProtection:
//
//     app.use(tuza::http::csrf({.trusted_origins = {"https://admin.example.com"}, .bypass = {"POST /hooks/{name}"}}));
//
//   - GET, HEAD and OPTIONS pass: they must not change anything.
//   - With Sec-Fetch-Site (all browsers since 2023): "same-origin" and "none" (typed by the user) pass.
//   - Without it, a request without Origin passes: it is not from a browser. So does one whose Origin has the host of the
//     request; http and https are not told apart, since the server may stand behind a proxy.
//   - All others get 403, unless their Origin is trusted, or the request matches a bypass.
#pragma once

#include <tuza/http/middleware.h>

#include <functional>
#include <string>
#include <vector>

namespace tuza::http {

struct CsrfOptions {
  std::vector<std::string> trusted_origins{};  // "https://admin.example.com", "https://example.com:8443"
  // Patterns as of a Router, for endpoints that other sites may call. A path that the router would redirect does not match.
  // "POST /hooks/{name}" exempts the route of that form, and not "POST /hooks/admin" where that is a route: so it has no effect
  // in front of a router, nor for paths of one that is mounted, of which the route is not known yet. "/hooks/" and
  // "/hooks/{rest...}" exempt all that is below, whichever route answers it.
  std::vector<std::string> bypass{};
  Handler refused{};  // instead of a 403 with a line of text
};

// Throws std::invalid_argument for a malformed origin or pattern.
[[nodiscard]] Middleware csrf(CsrfOptions options = {});

}  // namespace tuza::http
