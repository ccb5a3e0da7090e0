// Public header, part of <tuza/http.h>.
//
// A request as seen by its handler.
//
//     router.handle("GET /items/{id}", [](Request& req, ResponseWriter& res) {
//       res.text("item " + std::string(req.path_value("id")));
//     });
//
// The request and all its views are valid until the handler returns. Thread-unsafe: owned by the handler's
// goroutine.
#pragma once

#include <tuza/http/method.h>
#include <tuza/netpoll/endpoint.h>
#include <tuza/sched/result.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tuza::http {

class RequestLoop;

class Request {
 public:
  struct Header {
    std::string_view name, value;
  };

  explicit Request(RequestLoop& loop) : loop_(loop) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  [[nodiscard]] Method method() const;
  [[nodiscard]] std::string_view method_name() const { return name(method()); }
  // HTTP/1.<this>: 0 or 1.
  [[nodiscard]] int version_minor() const;

  // The request target as received; its path and query (without "?"), still percent-encoded.
  [[nodiscard]] std::string_view target() const;
  [[nodiscard]] std::string_view path() const;
  [[nodiscard]] std::string_view query() const;
  // The host and port that the client requested; may be empty in HTTP/1.0.
  [[nodiscard]] std::string_view host() const;

  // The part of the path matched by {name} in the pattern, decoded; empty if the pattern has no such name.
  [[nodiscard]] std::string_view path_value(std::string_view name) const;
  // The first value of a query parameter, decoded ("+" is a space); nullopt if the parameter is missing.
  [[nodiscard]] std::optional<std::string_view> query_value(std::string_view name) const;

  // The value of the first header field with that name, ignoring case; nullopt if there is none.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
  // All header fields, in the order received.
  [[nodiscard]] std::size_t header_count() const;
  [[nodiscard]] Header header_at(std::size_t index) const;

  // The length announced by the client; nullopt for a chunked body.
  [[nodiscard]] std::optional<std::uint64_t> content_length() const;

  // The next bytes of the body; 0 at its end. An error means that the body is malformed, too large, too slow
  // or cut off. The handler should then return: if it has not begun to answer, the server answers (400, 413,
  // 408), and closes the connection. Parks.
  Result<std::size_t> read_body(std::span<std::byte> into);
  // The whole body, or the part that read_body() has not read yet. Parks.
  Result<std::string_view> body();

  // The client's address.
  [[nodiscard]] Result<net::Endpoint> remote_endpoint() const;
  // The same as text, "127.0.0.1:54102"; "-" if the address is no longer known. Queried from the system once
  // per connection. Valid until the handler returns.
  [[nodiscard]] std::string_view remote() const;

  // For other parts of the server.
  [[nodiscard]] RequestLoop& loop() { return loop_; }

 private:
  RequestLoop& loop_;
};

}  // namespace tuza::http
