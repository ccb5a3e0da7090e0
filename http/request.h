// Public header, part of <tuza/http.h>.
//
// A request, as its handler sees it.
//
//     router.handle("GET /items/{id}", [](Request& req, ResponseWriter& res) {
//       res.text("item " + std::string(req.path_value("id")));
//     });
//
// It and all its views are valid until the handler returns. Thread-unsafe: belongs to the handler's
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

  // The request target as it came; its path and query (without "?"), still percent-encoded.
  [[nodiscard]] std::string_view target() const;
  [[nodiscard]] std::string_view path() const;
  [[nodiscard]] std::string_view query() const;
  // Host and port the client asked for; may be empty in HTTP/1.0.
  [[nodiscard]] std::string_view host() const;

  // The part of the path that the pattern calls {name}, decoded; empty if the pattern has none of that name.
  [[nodiscard]] std::string_view path_value(std::string_view name) const;
  // The first value of a query parameter, decoded ("+" is a space); nothing if it is not there.
  [[nodiscard]] std::optional<std::string_view> query_value(std::string_view name) const;

  // The value of the first header field of that name, compared without case; nothing if there is none.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
  // All fields, in the order they came.
  [[nodiscard]] std::size_t header_count() const;
  [[nodiscard]] Header header_at(std::size_t index) const;

  // The length the client has announced; nothing for a chunked body.
  [[nodiscard]] std::optional<std::uint64_t> content_length() const;

  // The next bytes of the body; 0 at its end. An error means that the body is malformed, too large, too slow
  // or cut off; the handler should return: if it has not begun to answer, the server answers for it (400,
  // 413, 408), and closes the connection. Parks.
  Result<std::size_t> read_body(std::span<std::byte> into);
  // All of it, or what read_body() has left of it. Parks.
  Result<std::string_view> body();

  // The client's address.
  [[nodiscard]] Result<net::Endpoint> remote_endpoint() const;
  // The same as text, "127.0.0.1:54102"; "-" if it is not known any more. Asked of the system once per
  // connection. Valid until the handler returns.
  [[nodiscard]] std::string_view remote() const;

  // For the server's own parts.
  [[nodiscard]] RequestLoop& loop() { return loop_; }

 private:
  RequestLoop& loop_;
};

}  // namespace tuza::http
