// Public header, part of <tuza/http.h>.
//
// Router: which handler answers which request.
//
//     router.handle("GET /", home);                         // this path only
//     router.handle("GET /items/{id}", item);               // one segment, req.path_value("id")
//     router.handle("/files/{path...}", files);             // the rest of the path, any method
//     router.handle("POST /items", add);
//
// Patterns are those of Go 1.22 without hosts: [METHOD ]/segment/{name}/{rest...}. A pattern without a method
// answers all methods; one for GET answers HEAD, too. A pattern that ends in "/" (other than "/" itself)
// answers everything below it. Of several patterns that match, the most specific answers: segment by segment
// from the left, text goes before {name}, {name} before {rest...}; a method before none.
//
// Unlike Go's: there is no "{$}", "/dir" is not redirected to "/dir/", and paths are not cleaned. Segments
// are taken apart first and decoded then, so "..", "%2e%2e", "%2F" and "%00" reach {name} and {rest...} as
// they are (decoded by path_value()): a handler that makes a file name of them must check it.
//
// A path that no pattern matches gets 404; one that matches with other methods only, 405 with Allow, and for
// OPTIONS 204 with Allow.
//
// Thread-compatible: set up first, then serve; the lookups of many goroutines do not disturb each other.
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

  // Throws std::invalid_argument, naming the pattern, if it is malformed or there already, or has no handler.
  void handle(std::string_view pattern, Handler handler);

  // Answers one request; what makes a Router a Handler.
  void operator()(Request& request, ResponseWriter& response) const;

 private:
  struct Node;
  std::unique_ptr<Node> root_;
};

}  // namespace tuza::http
