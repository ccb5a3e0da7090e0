// Public header, part of <tuza/http.h>.
//
// Router: maps each request to its handler.
//
//     router.handle("GET /", home);                         // this path only
//     router.handle("GET /items/{id}", item);               // one segment, req.path_value("id")
//     router.handle("/files/{path...}", files);             // the rest of the path, any method
//     router.handle("POST /items", add);
//
// Patterns are those of Go 1.22 without hosts: [METHOD ]/segment/{name}/{rest...}. A pattern without a method
// answers all methods; a pattern for GET also answers HEAD. A pattern that ends in "/" (other than "/"
// itself) answers everything below it. If several patterns match, the most specific one answers: segment by
// segment from the left, text precedes {name}, and {name} precedes {rest...}; a pattern with a method
// precedes one without.
//
// Differences from Go: there is no "{$}", "/dir" is not redirected to "/dir/", and paths are not cleaned. The
// path is split into segments before decoding, so "..", "%2e%2e", "%2F" and "%00" reach {name} and {rest...}
// unchanged (decoded by path_value()): a handler that builds a file name from them must check them.
//
// A path that matches no pattern gets 404. A path that matches only with other methods gets 405 with Allow,
// and for OPTIONS 204 with Allow.
//
// Thread-compatible: set it up first, then serve. Lookups of concurrent goroutines are independent.
#pragma once

#include <tuza/http/handler.h>

#include <memory>
#include <string_view>

namespace tuza::http {

class Router {
 public:
  Router();
  Router(Router&&) noexcept;
  Router& operator=(Router&&) noexcept;
  ~Router();

  // Throws std::invalid_argument, naming the pattern, if the pattern is malformed or already registered, or
  // the handler is empty.
  void handle(std::string_view pattern, Handler handler);

  // Answers one request; this operator makes a Router a Handler.
  void operator()(Request& request, ResponseWriter& response) const;

 private:
  struct Node;
  std::unique_ptr<Node> root_;
};

}  // namespace tuza::http
