// Public header, part of <tuza/http.h>.
//
// A request as seen by its handler.
//
//     router.handle("GET /items/{id}", [](Request& req, ResponseWriter& res) {
//       res.text("item " + std::to_string(req.path_value<int>("id")));
//     });
//
// The request and all its views are valid until the handler returns. Thread-unsafe: owned by the handler's
// goroutine.
#pragma once

#include <tuza/http/cookie.h>
#include <tuza/http/credentials.h>
#include <tuza/http/detail/parse_value.h>
#include <tuza/http/detail/request_values.h>
#include <tuza/http/header_range.h>
#include <tuza/http/json_codec.h>
#include <tuza/http/key.h>
#include <tuza/http/method.h>
#include <tuza/http/values.h>
#include <tuza/netpoll/endpoint.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace tuza::net {
struct TlsInfo;
}

namespace tuza::http {

class Exchange;

class Request {
 public:
  explicit Request(Exchange& exchange) : exchange_(exchange) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  [[nodiscard]] Method method() const;
  [[nodiscard]] std::string_view method_name() const { return name(method()); }
  // HTTP/1.<this>: 0 or 1.
  [[nodiscard]] int version_minor() const;

  // The request target as received; its path and query (without "?"), still percent-encoded. Either may have what browsers
  // and older clients do not escape: "^", a lone "%", bytes above 0x7f, and in a query also "{", "}", "`" and "\\". It has no
  // space, quotation mark, "<", ">", "#" or control character.
  [[nodiscard]] std::string_view target() const;
  [[nodiscard]] std::string_view path() const;
  [[nodiscard]] std::string_view query() const;
  // The host and port that the client requested; may be empty in HTTP/1.0.
  [[nodiscard]] std::string_view host() const;

  // The part of the path matched by {name} in the pattern, decoded; nullopt if the pattern has no such name. A "%" that
  // begins no escape stays, here and in the query.
  [[nodiscard]] std::optional<std::string_view> path_value(std::string_view name) const;
  // The same as a number, bool or text. Throws StatusError(404) if it is none, since then nothing has this path; and
  // std::logic_error if the pattern has no such name.
  template <class T>
  [[nodiscard]] T path_value(std::string_view name) const {
    const std::optional<std::string_view> text = path_value(name);
    if (!text) detail::no_such_path_value(name);
    const std::optional<T> value = detail::parse_value<T>(*text);
    if (!value) detail::no_such_path();
    return *value;
  }
  // What Router::mount() has cut off in front of path(): "/debug", as sent; for links and redirects. Otherwise empty.
  [[nodiscard]] std::string_view mount_path() const;
  // The pattern that the router has found, "GET /items/{id}"; empty outside of a router. For logs and metrics: unlike the
  // path, a client cannot make new ones.
  [[nodiscard]] std::string_view pattern() const;
  // The first value of a query parameter, decoded ("+" is a space); nullopt if the parameter is missing.
  [[nodiscard]] std::optional<std::string_view> query_value(std::string_view name) const;
  // The same as a number, bool or text. Throws StatusError(400) if it is none.
  template <class T>
  [[nodiscard]] std::optional<T> query_value(std::string_view name) const {
    return typed<T>(query_value(name), "query parameter", name);
  }

  // All parameters of the query, in order. Throws StatusError(400) if there are more than `count_max`.
  [[nodiscard]] Values query_values(std::size_t count_max = Values::kCountMax) const;

  // The value of the first header field with that name, ignoring case; nullopt if there is none.
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
  // The same as a number, bool or text. Throws StatusError(400) if it is none.
  template <class T>
  [[nodiscard]] std::optional<T> header(std::string_view name) const {
    return typed<T>(header(name), "header field", name);
  }
  // All header fields, in the order received: a range of HeaderField.
  [[nodiscard]] ReceivedHeaders headers() const;

  // The value of the first cookie of that name, as sent; nullopt if there is none. All cookies, in order
  // (http/cookie.h). The client may have invented them: http/cookie_signer.h.
  [[nodiscard]] std::optional<std::string_view> cookie(std::string_view name) const;
  [[nodiscard]] RequestCookies cookies() const { return RequestCookies(headers()); }

  // What the Authorization field says; nullopt if there is none, or several, or of another scheme, or if it is malformed.
  [[nodiscard]] std::optional<BasicCredentials> basic_auth() const;
  [[nodiscard]] std::optional<std::string_view> bearer_token() const;

  // The one of `offered` that the client prefers, by Accept, Accept-Language or Accept-Encoding (http/negotiate.h); of
  // equal ones the first that the client names. nullopt if none is acceptable; answer then with 406, or with what there is.
  using Offered = std::initializer_list<std::string_view>;
  [[nodiscard]] std::optional<std::string_view> accepts(Offered offered) const;
  [[nodiscard]] std::optional<std::string_view> accepts_language(Offered offered) const;
  // "identity", which need not be offered, if the client prefers it or accepts nothing else.
  [[nodiscard]] std::optional<std::string_view> accepts_encoding(Offered offered) const;

  // The length announced by the client; nullopt for a chunked body.
  [[nodiscard]] std::optional<std::uint64_t> content_length() const;

  // The next bytes of the body; 0 at its end. An error means that the body is malformed, too large, too slow
  // or cut off. The handler should then return: if it has not begun to answer, the server answers (400, 413,
  // 408), and closes the connection. So it is if the body has not come when the time of the request is over, the deadline of
  // context(). Parks.
  [[nodiscard]] Result<std::size_t> read_body(std::span<std::byte> into);
  // The whole body, or the part that read_body() has not read yet. Parks.
  [[nodiscard]] Result<std::string_view> body();
  // The same, until `ctx` ends instead: then its cause is returned, and reading may go on later. With Context::background()
  // the server's body_timeout alone limits the wait.
  [[nodiscard]] Result<std::size_t> read_body(const Context& ctx, std::span<std::byte> into);
  [[nodiscard]] Result<std::string_view> body(const Context& ctx);

  // The body as a form, application/x-www-form-urlencoded; what an HTML form sends that has no files. Throws StatusError:
  // 415 for another Content-Type, 413 for more than `bytes_max`, 400 for more than `count_max` items, and the status that
  // fits if the body cannot be read. For multipart/form-data: http/multipart.h. Parks.
  [[nodiscard]] Values form(std::size_t bytes_max = std::size_t{1} << 20,
                            std::size_t count_max = Values::kCountMax);
  // The body as JSON, by JsonCodec<T> (http/json_codec.h). Throws StatusError: 415 unless the Content-Type is
  // application/json or ends in +json, 413 beyond `limits.bytes_max`, 400 for what is malformed, too deep, or no T (a
  // JsonError or std::logic_error of the conversion), and the status that fits if the body cannot be read. Parks.
  template <class T>
    requires JsonDecodable<T>
  [[nodiscard]] T json(const JsonLimits& limits = {}) {
    const std::string text = json_text(limits);
    try {
      return JsonCodec<T>::decode(text);
    } catch (const std::exception& error) {
      not_the_json(error);
    }
  }

  template <class T>  // says what is missing
  [[nodiscard]] T json(const JsonLimits& = {}) {
    detail::require_json_codec<JsonDecodable<T>>();
    std::unreachable();
  }

  // Ends when nobody waits for the answer any more: the client has gone (it has closed the connection, or its side of
  // it, as in Go), the server's request_timeout has passed, shutdown cuts the request off, or the handler has returned.
  // For all that the handler waits for, and for goroutines that it starts. The cause is Errc::kClosed for a client that
  // has gone, Errc::kTimeout, or Errc::kCancelled, with op() "shutdown" and the signal if shutdown cuts it off. Made when it is first asked for; a request that does not ask
  // pays nothing.
  [[nodiscard]] const Context& context() const;

  // The same, and ends already when the server begins to shut down, with that cause, "shutdown SIGTERM: ...": for handlers that would otherwise
  // go on until the shutdown cuts them off (streams of events, WebSockets). They then say goodbye, and return.
  [[nodiscard]] const Context& until_shutdown() const;

  // The fields behind a chunked body, in the order received; none before the end of the body has been read. They are
  // limited by ServerOptions::chunk_overhead_bytes_max.
  [[nodiscard]] HeaderLines trailers() const;
  // The value of the first one with that name, ignoring case; nullopt if there is none.
  [[nodiscard]] std::optional<std::string_view> trailer(std::string_view name) const;

  // Attaches a value to this request, for the handlers behind this middleware (http/key.h), or replaces the value of
  // that key. Values live until the outermost handler has returned, and end in reverse order; the next request of the
  // connection has none. Returns the stored value; the reference stays valid when the value is replaced.
  template <class T>
  T& set(const Key<T>& key, std::type_identity_t<T> value) {
    if (T* const old = values_.find(key)) return *old = std::move(value);
    return values_.add(key, std::move(value), [this](std::size_t bytes, std::size_t alignment) {
      return allocate(bytes, alignment);
    });
  }
  // The value of that key; null if none has been set.
  template <class T>
  [[nodiscard]] T* get(const Key<T>& key) {
    return values_.find(key);
  }
  template <class T>
  [[nodiscard]] const T* get(const Key<T>& key) const {
    return values_.find(key);
  }
  template <class T>
  T& set(const Key<T>&&, std::type_identity_t<T>) = delete;  // a key must outlive the request

  // The client's address: the peer's, or what the PROXY protocol or real_ip() says, then with port 0 if it is not known.
  [[nodiscard]] Result<net::Endpoint> remote_endpoint() const;
  // The same as text, "127.0.0.1:54102". Valid until the handler returns.
  [[nodiscard]] std::string_view remote() const;

  // What the TLS handshake has agreed on; nullopt if the connection is not TLS. Include <tuza/netpoll/tls.h>.
  [[nodiscard]] std::optional<net::TlsInfo> tls_info() const;

  // For other parts of the server.
  [[nodiscard]] Exchange& exchange() const { return exchange_; }

 private:
  template <class T>
  static std::optional<T> typed(std::optional<std::string_view> text, std::string_view what,
                                std::string_view name) {
    if (!text) return std::nullopt;
    const std::optional<T> value = detail::parse_value<T>(*text);
    if (!value) detail::malformed_value(what, name);
    return value;
  }
  // The body up to a limit. Throws StatusError. Parks.
  std::string limited_body(std::size_t bytes_max);
  [[noreturn]] void refuse_unreadable();
  std::string json_text(const JsonLimits& limits);
  [[noreturn]] static void not_the_json(const std::exception& error);
  // Memory that is freed after the request.
  void* allocate(std::size_t bytes, std::size_t alignment);

  Exchange& exchange_;
  detail::RequestValues values_;
};

}  // namespace tuza::http
