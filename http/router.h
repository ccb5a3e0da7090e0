// Public header, part of <tuza/http.h>.
//
// Router: maps each request to its handler.
//
//     router.handle("GET /{$}", home);                      // "/" only
//     router.handle("GET /items/{id}", item);               // one segment, req.path_value("id")
//     router.handle("POST /items", add);
//     router.handle("/files/", files);                      // everything below, any method
//     router.handle("static.example.com/{path...}", files); // the rest of the path, for one host
//     router.use(access_log);                               // around all of them
//     auto api = router.group("/api/v1");                   // a prefix and middleware of its own
//     api.use(authenticated);
//     api.handle("GET /users/{id}", user);                  // GET /api/v1/users/{id}
//     router.mount("/debug", std::move(other));             // `other` sees what is behind "/debug"
//
// Patterns are those of Go 1.22: [METHOD ][HOST]/[PATH].
//   - {name} matches one segment, {name...} at the end the rest of the path, {$} at the end nothing behind the slash. A
//     pattern that ends in "/" answers everything below it: "/" everything.
//   - A pattern without a method answers all methods, one for GET also HEAD. A host matches without its port, in any case.
//   - If several patterns match a request, the most specific one answers: that whose paths are a subset of the others'; of the
//     same path, that with a method. So "GET /" and "/api/" may stand beside each other, which Go refuses. A pattern with a host
//     takes precedence over one without. Two patterns that match the same request, and of which neither is more specific
//     ("/a/{x}" and "/{y}/b"), conflict: the second one is refused.
//   - If "/dir/" matches and "/dir" does not, "/dir" is redirected to "/dir/" (307), with a method that "/dir/" has; others get
//     405. So is a path with empty segments, "." or "..", encoded or not, to the one that it means. redirects() switches
//     either off.
// Both patterns and paths are compared decoded, segment by segment: "GET /my files" is "GET /my%20files".
// The path is split into segments before decoding: "%2F" and "%00" reach {name} and {name...}, decoded by path_value().
// A handler that builds a file name from them must check them.
//
// A request whose Content-Length is above the server's limit reaches middleware, and not the handler; the answer is 413. A
// mounted handler that is no router is called, and cannot read the body.
//
// A path that matches no pattern gets 404. A path that matches only with other methods gets 405 with Allow,
// and for OPTIONS 204 with Allow. OPTIONS * gets 204 with the methods of all patterns; those without a method count for all
// but TRACE and CONNECT. Both errors keep the header fields that middleware has set, as
// ResponseWriter::error() does; not_found() and method_not_allowed() set handlers that answer instead.
//
// Thread-compatible: set it up first, then serve. Lookups of concurrent goroutines are independent.
#pragma once

#include <tuza/http/handler.h>
#include <tuza/http/middleware.h>

#include <concepts>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tuza::http {

class RouteTree;
class Router;

// Patterns of a Router with a common prefix, and middleware around them. Valid as long as the router stays where it is.
class RouteGroup {
 public:
  // As Router::handle(), with the prefix before the path of `pattern`, and the group's middleware around `handler`. Without
  // a path ("GET ", ""), the prefix itself.
  void handle(std::string_view pattern, Handler handler,
              const std::source_location& where = std::source_location::current());
  // Around the handlers that are registered afterwards; the first is the outermost. Called once for each of them.
  void use(Middleware middleware);
  // As Router's, for the prefix and what is below it, with the group's middleware around `handler`. The longest prefix that
  // has a handler answers.
  void not_found(Handler handler, const std::source_location& where = std::source_location::current());
  void method_not_allowed(Handler handler,
                          const std::source_location& where = std::source_location::current());
  // A group within this one: it has this one's prefix and, so far, this one's middleware.
  [[nodiscard]] RouteGroup group(std::string_view prefix) const;
  template <std::invocable<RouteGroup&> Function>
  void group(std::string_view prefix, Function&& add) const {
    RouteGroup made = group(prefix);
    std::forward<Function>(add)(made);
  }

 private:
  friend class Router;
  RouteGroup(Router& router, std::string prefix) : router_(router), prefix_(std::move(prefix)) {}
  [[nodiscard]] Handler wrapped(Handler handler) const;
  Router& router_;
  std::string prefix_;
  std::vector<std::shared_ptr<Middleware>> middleware_;
};

// What a router redirects instead of looking for the path as it is.
struct RouterRedirects {
  // Off: "{name...}" has a path as it was sent, a URL for instance ("/fetch/http://host/a/../b"), and ".." may be a {name}. A
  // handler that builds a file name from them must check them.
  bool to_clean_path = true;
  bool to_missing_slash = true;  // "/dir" to "/dir/"; off: 404, or a pattern that matches more
};

class Router {
 public:
  Router();
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;
  ~Router();

  // Throws std::invalid_argument, naming the pattern, if it is malformed or the handler is empty; and naming both patterns
  // with their places in the program if it conflicts with another one.
  void handle(std::string_view pattern, Handler handler,
              const std::source_location& where = std::source_location::current());

  // Answers requests whose path matches no pattern. The status is set already, 404; the handler adds a body, or sets
  // another one. Request::pattern() is empty. Throws std::invalid_argument for a second one. A mounted router has its own.
  void not_found(Handler handler, const std::source_location& where = std::source_location::current());
  // The same for a path that other methods may have: 405, and Allow is set. Not for OPTIONS.
  void method_not_allowed(Handler handler,
                          const std::source_location& where = std::source_location::current());

  // Around everything that this router answers, 404, 405 and redirects included; the first is the outermost. It sees
  // Request::pattern().
  void use(Middleware middleware);
  // `prefix`: a path, "/api"; it may have {name}s.
  [[nodiscard]] RouteGroup group(std::string_view prefix);
  // The same for the length of a call: router.group("/api", [](RouteGroup& api) { api.handle(...); });
  template <std::invocable<RouteGroup&> Function>
  void group(std::string_view prefix, Function&& add) {
    RouteGroup made = group(prefix);
    std::forward<Function>(add)(made);
  }
  // All requests below `prefix` go to `handler`, which sees the path without it: another router, a file server.
  // Request::mount_path() is the prefix. If `handler` is a router, it and its handlers see its own pattern in
  // Request::pattern(); when it has returned, the pattern has the prefix, too. `prefix` has no wildcards. "/": all requests
  // that no other pattern matches, as they are.
  void mount(std::string_view prefix, Handler handler,
             const std::source_location& where = std::source_location::current());

  // A mounted router has its own; its paths come through this one's first.
  void redirects(const RouterRedirects& which) { redirects_ = which; }

  // Answers one request; this operator makes a Router a Handler.
  void operator()(Request& request, ResponseWriter& response) const;

 private:
  friend class RouteGroup;
  struct Chain;
  struct Misses;
  Misses& misses();

  std::unique_ptr<RouteTree> tree_;
  std::unique_ptr<Misses> misses_;  // null: answered by texts
  std::unique_ptr<Chain> chain_;    // null: no middleware
  RouterRedirects redirects_;
};

}  // namespace tuza::http
