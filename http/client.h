// Public header, part of <tuza/http.h>.
//
// An HTTP/1.1 client: requests to any server, over connections that are kept.
//
//     tuza::http::Client client;                                  // one for the whole program
//     auto res = client.get(ctx, "https://example.org/items?page=2");
//     if (!res) return std::unexpected(res.error());              // "GET https://example.org/...: dial ...: refused"
//     if (res->status() != 200) ...;
//     TUZA_TRY(std::string text, res->body());                    // all of it, up to body_bytes_max
//
//     tuza::http::ClientRequest upload(Method::kPut, url);
//     upload.set_header("Content-Type", "video/mp4").set_body_source([&](auto into) { return file.read(into); });
//     auto stored = client.send(ctx, upload);
//     while (auto n = stored->read(buffer)) { ... }                // the response's body piece by piece; 0: its end
//
// A status is no error: an error means that there is no response, or no more of it, and names the method and the URL. Errors:
// those of net::dial(), of TLS and of a proxy (http/client_proxy.h); Errc::kBadAddress, a URL that cannot be asked for;
// Errc::kBadMessage, the server has broken the protocol or a limit; Errc::kEndOfStream, it has closed in the middle;
// Errc::kTimeout; the cause of the context. The context counts until the end of the response's body.
//
// A request that fails on a kept connection before the first byte of an answer is sent once more over a new one, if it is
// safe to do so: idempotent methods (RFC 9110 9.2.2), or any with an Idempotency-Key, whose body is a text.
//
// Client: thread-safe, goroutines only, within one tuza::run. Requests and responses: one goroutine at a time. Every call
// that talks parks.
#pragma once

#include <tuza/sched/detail/language.h>  // first
#include <tuza/sched/detail/move_only_function.h>

#include <tuza/http/client_middleware.h>
#include <tuza/http/client_proxy.h>
#include <tuza/http/credentials.h>
#include <tuza/http/header_range.h>
#include <tuza/http/hijacked_stream.h>
#include <tuza/http/json_codec.h>
#include <tuza/http/method.h>
#include <tuza/http/url.h>
#include <tuza/http/values.h>
#include <tuza/netpoll/tls.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace tuza::http {

class BodySplicer;
class ClientExchange;
class ClientResponse;
class ClientState;
class HopFields;
class MultipartForm;
class Request;
struct Hop;

struct ClientOptions {
  // -- Connections. Callers that find no place wait, first come, first served.
  std::size_t connections_per_origin_max = 0;      // open at once; 0: no limit
  std::size_t connections_max = 0;                 // to all origins together; 0: no limit
  std::size_t idle_per_origin_max = 100;           // kept for later requests; 0: none is kept
  std::size_t idle_max = 1'000;                    // of all origins together
  std::chrono::milliseconds idle_timeout{60'000};  // then a kept connection is closed
  // All connections go there, whatever host the URLs name: "unix:/run/docker.sock", "127.0.0.1:8080". Empty: to the host.
  std::string address{};
  // Makes the connections instead, if set: through another library, in memory for a test. Called for many requests
  // at once; may park until the context ends, which it does after dial_timeout. With an https URL, the client encrypts what
  // it returns. Its errors are those of the call.
  std::function<Result<net::Conn>(const Context& ctx, const Url& url)> dial{};
  // The same for https URLs, before `dial`, if set; but the client adds no TLS: what it returns is encrypted already, by another
  // library for example, or need not be, as in memory. Whom it trusts is its own business: `tls` has no meaning then.
  std::function<Result<net::Conn>(const Context& ctx, const Url& url)> dial_tls{};
  // Not together with `address`, `dial` or `dial_tls`. A request's own Proxy-Authorization is not sent then, to anyone. A forwarded request
  // that the proxy refuses has a response like any other (407); a tunnel that it refuses is an error.
  ProxyOptions proxy{};
  net::TlsClientOptions tls{};  // whom to trust, a certificate of one's own; alpn is not used

  // -- Timeouts; 0: no limit.
  std::chrono::milliseconds dial_timeout{10'000};
  std::chrono::milliseconds head_timeout{
      30'000};  // from the end of the request to the end of the response's head
  // Of everything, from the call to the end of the body, and of the wait for a connection where their number is limited, too.
  std::chrono::milliseconds timeout{0};
  // Of each wait for the server within a body: until it takes more of the request's, or until more of the response's arrives.
  // An event stream needs a server that says something more often, or a longer time.
  std::chrono::milliseconds stall_timeout{300'000};
  // With ClientRequest::expect_continue(): the body is sent after this time, even if the server has said nothing.
  std::chrono::milliseconds continue_timeout{1'000};

  // -- Limits on what a server may send. More: Errc::kBadMessage.
  std::size_t head_bytes_max = 64 << 10;
  std::size_t headers_max = 256;         // at most 256
  std::size_t body_bytes_max = 8 << 20;  // of ClientResponse::body(), decoded

  // Asks for compressed bodies (Accept-Encoding: gzip, br, zstd, as far as the build has their libraries), and decodes them
  // while they are read. Not for HEAD, and not for a request with an Accept-Encoding or a Range of its own: its body is as
  // the server sends it.
  bool decompress = true;
  // Decoded to received bytes, at least 1; the first MiB is free. A decoder takes up to 8 MiB (zstd), 16 MiB (br) or 44 KiB
  // (gzip) besides, as the server demands.
  std::size_t decompress_ratio_max = 200;

  // Redirects that are followed (301, 302, 303, 307, 308); the next one is an error. 0: a redirect is a response like any
  // other. One to another origin carries neither Authorization nor Cookie nor Proxy-Authorization.
  std::size_t redirects_max = 10;
  // Whether such a redirect is followed, if set: to `next`, after `answer`, whose body is still unread. false: it is a response like
  // any other, and so is one that leads where no client goes, as to "app:login". Called for many requests at once; what it throws,
  // the call throws. It sees names, not the addresses behind them: see `dial`.
  std::function<bool(const Url& next, const ClientResponse& answer)> allow_redirect{};
  std::string user_agent = "Tuza";  // empty: no field

  // Around each request that goes out, redirects included; the first is the outermost (http/client_middleware.h).
  std::vector<ClientMiddleware> middleware{};
};

class ClientRequest {
 public:
  // Fills a part of the memory, and returns how much; 0: the end of the body. May park, until the context ends: the call's
  // context does, or the server has answered. A source that waits for nobody can do without the context.
  using BodySource = MoveOnlyFunction<Result<std::size_t>(const Context&, std::span<std::byte>)>;
  template <class Source>
  static constexpr bool is_plain_source =
      std::is_invocable_r_v<Result<std::size_t>, Source&, std::span<std::byte>>;

  // A malformed URL is an error of Client::send(). A Url goes out as it is, also one made by hand.
  ClientRequest(Method method, std::string_view url) : method_(method), url_(Url::parse(url)) {}
  ClientRequest(Method method, Url url) : method_(method), url_(std::move(url)) {}

  // Throw std::invalid_argument for a name that is no token, a value with control characters, fields that the client sets
  // itself (Content-Length, Transfer-Encoding, Connection, Expect, Upgrade), a malformed Host, and a second one.
  ClientRequest& set_header(std::string_view name, std::string_view value);
  ClientRequest& add_header(std::string_view name, std::string_view value);
  ClientRequest& remove_header(std::string_view name);
  // An Authorization field, as http::basic_auth() makes it (http/credentials.h). A URL takes no user and password.
  ClientRequest& set_basic_auth(std::string_view user, std::string_view password) {
    return set_header("Authorization", basic_auth(user, password));
  }
  ClientRequest& set_url(Url url) {
    url_ = std::move(url);
    return *this;
  }
  // A text: it has a length, and can be sent again where a redirect or a lost connection asks for that. A server that answers
  // before its end still gets the rest while the response is read, unless it refuses or redirects (a status from 300).
  ClientRequest& set_body(std::string body, std::string_view content_type = {});
  // A form, as a browser sends one without files (application/x-www-form-urlencoded).
  ClientRequest& set_form(const Values& form) {
    return set_body(form.encode(), "application/x-www-form-urlencoded");
  }
  // A form with files (http/multipart_form.h). It can be sent again.
  ClientRequest& set_multipart(MultipartForm form);
  // A text that is JSON, or a value, by JsonCodec<T> (http/json_codec.h).
  ClientRequest& set_json(std::string_view text) { return set_body(std::string(text), "application/json"); }
  ClientRequest& set_json(detail::BracedList) = delete;  // of a library: write nlohmann::json{...}
  template <JsonEncodable T>
  ClientRequest& set_json(const T& value) {
    std::string text;
    JsonCodec<T>::encode(value, text);
    return set_body(std::move(text), "application/json");
  }
  template <class T>  // says what is missing
    requires(!JsonEncodable<T> && !std::convertible_to<const T&, std::string_view>)
  ClientRequest& set_json(const T&) {
    detail::require_json_codec<JsonEncodable<T>>();
    return *this;
  }
  // A body that is made while it is sent, no faster than the server takes it: in chunks, or with the length that is known.
  // An error of the source is that of the call. A server that answers before the end gets no more of it, unless keep_sending()
  // has been called: what the source refers to need not outlive the call.
  ClientRequest& set_body_source(BodySource source, std::optional<std::uint64_t> length = std::nullopt);
  template <class Source>
    requires is_plain_source<Source>
  ClientRequest& set_body_source(Source source, std::optional<std::uint64_t> length = std::nullopt) {
    return set_body_source(
        BodySource([source = std::move(source)](const Context&, std::span<std::byte> into) mutable {
          return source(into);
        }),
        length);
  }
  // A body that may be sent again, like a text: `open` makes a source of it, anew for each sending. An error of it is that of
  // the call. With keep_sending() the body is sent once only.
  using BodyOpener = MoveOnlyFunction<Result<BodySource>()>;
  ClientRequest& set_body_opener(BodyOpener open, std::optional<std::uint64_t> length = std::nullopt);
  // Behind a body in chunks. The source may still add them.
  ClientRequest& add_trailer(std::string_view name, std::string_view value);
  // The body waits until the server has said that it wants it ("100 Continue"), or for continue_timeout.
  ClientRequest& expect_continue() {
    expects_continue_ = true;
    return *this;
  }
  // The source goes on while the response is read, for servers that answer piece by piece; the end of the response ends it, and
  // so does 101. The request must outlive the response: one that ends while it is being sent ends the process.
  ClientRequest& keep_sending() {
    keeps_sending_ = true;
    return *this;
  }
  // Called for each interim response (1xx) before the response, such as 103 with its early hints: with its status, and with its
  // fields, valid during the call. Not for 100, which answers expect_continue(), nor for 101. In the goroutine that sends the
  // request, which goes on when it returns; what it throws, Client::send() throws.
  using InterimFunction = MoveOnlyFunction<void(int status, const ReceivedHeaders& headers)>;
  ClientRequest& on_interim(InterimFunction function) {
    on_interim_ = std::move(function);
    return *this;
  }
  // Asks the server to go on with another protocol over this connection, such as "websocket". A server that does answers 101,
  // and ClientResponse::hijack() is the connection then; any other answer is a usual one. Throws as set_header().
  ClientRequest& set_upgrade(std::string_view protocols);

  [[nodiscard]] Method method() const { return method_; }
  [[nodiscard]] const Result<Url>& url() const { return url_; }
  // Whether anything of it was sent by the last Client::send(). A request that failed without it has reached no server, so
  // that it may be sent again, whatever it means.
  [[nodiscard]] bool sent() const { return sent_; }
  // Whether the last Client::send() got a connection within the limits of the client, or the right to make one. An error without
  // it says nothing about the server, which was not asked.
  [[nodiscard]] bool got_place() const { return got_place_; }
  [[nodiscard]] bool keeps_sending() const { return keeps_sending_; }
  // The text of set_body(), or ""; nullopt if the body has a source.
  [[nodiscard]] std::optional<std::string_view> body() const {
    if (without_body_) return std::string_view();
    return has_source() ? std::nullopt : std::optional<std::string_view>(text());
  }
  // It is a text, or there is none, or it has an opener.
  [[nodiscard]] bool can_repeat_body() const {
    return without_body_ || !has_source() || (opener_ && !keeps_sending_);
  }
  [[nodiscard]] HeaderLines headers() const { return HeaderLines(fields_); }
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;

 private:
  friend class ClientExchange;
  friend class ClientState;
  friend class MiddlewareChain;
  friend class RequestSender;
  friend struct Hop;
  friend class ReverseProxy;
  friend void pass_fields(const Request& in, const HopFields& hop, ClientRequest& out, bool underscores);
  friend void add_known_field(ClientRequest& out, std::string_view name, std::string_view value);
  [[nodiscard]] bool has_source() const { return source_ || opener_; }
  [[nodiscard]] bool has_body() const { return !without_body_ && (has_source() || text_ != nullptr); }
  [[nodiscard]] std::string_view text() const {
    return text_ ? std::string_view(*text_) : std::string_view();
  }

  // A goroutine reads the source beside the response. Its owner destroys or moves the request then only by mistake.
  class BeingSent {
   public:
    BeingSent() = default;
    BeingSent(BeingSent&&) noexcept {}
    BeingSent& operator=(BeingSent&&) noexcept { return *this; }
    ~BeingSent() {
      if (on) complain();
    }
    bool on = false;

   private:
    [[noreturn]] static void complain();
  };

  Method method_;
  Result<Url> url_;
  std::string fields_;  // lines "Name: value\r\n"
  std::string trailers_;
  std::shared_ptr<const std::string> text_;  // shared with its sending; null: none
  std::string upgrade_;                      // empty: none
  BodySource source_;                        // if set, the body; with an opener, that of the last sending
  BodyOpener opener_;
  InterimFunction on_interim_;      // may be null
  BodySplicer* splicer_ = nullptr;  // beside a source; null: none
  std::optional<std::uint64_t> length_;
  bool without_body_ = false;  // a redirect has made a GET of it
  bool expects_continue_ = false;
  bool keeps_sending_ = false;
  bool sent_ = false;
  bool got_place_ = true;
  BeingSent being_sent_;
};

// A response whose head has arrived. Its connection goes back when the body has been read; a response that is destroyed
// before closes it. Movable.
class ClientResponse {
 public:
  explicit ClientResponse(ClientExchange* exchange) : exchange_(exchange) {}

  [[nodiscard]] int status() const;
  [[nodiscard]] std::string_view reason() const;
  [[nodiscard]] int version_minor() const;  // HTTP/1.<this>
  // Valid as long as this response.
  [[nodiscard]] ReceivedHeaders headers() const;
  [[nodiscard]] std::optional<std::string_view> header(std::string_view name) const;
  // Of the body that follows, so 0 after HEAD; nullopt: not known before the end, as with each body that is decoded.
  [[nodiscard]] std::optional<std::uint64_t> content_length() const;
  // Whether read() decodes a compressed body. Then headers() have neither its Content-Encoding nor its Content-Length.
  [[nodiscard]] bool decompressed() const;
  // The one that has answered: after redirects, the last.
  [[nodiscard]] const Url& url() const;

  // At least one byte; 0 at the end of the body. Errc::kBadMessage also for a compressed body that is malformed, truncated,
  // coded more than once, or larger than decompress_ratio_max allows. Parks.
  [[nodiscard]] Result<std::size_t> read(std::span<std::byte> into);
  [[nodiscard]] Result<std::size_t> read(std::span<char> into) { return read(std::as_writable_bytes(into)); }
  // The rest of the body, at most `bytes_max`, or body_bytes_max of the client; more is Errc::kBadMessage. Parks.
  [[nodiscard]] Result<std::string> body(std::optional<std::size_t> bytes_max = std::nullopt);
  // The same as JSON, by JsonCodec<T> (http/json_codec.h), whatever its Content-Type: look at the status first. Errc::kBadMessage
  // also for what is malformed, no T, or nested more than JsonLimits::depth_max deep.
  template <class T>
    requires JsonDecodable<T>
  [[nodiscard]] Result<T> json(std::optional<std::size_t> bytes_max = std::nullopt) {
    const Result<std::string> text = json_text(bytes_max);
    if (!text) return std::unexpected(text.error());
    try {
      return JsonCodec<T>::decode(*text);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {  // also of a conversion that checks what it gets
      return std::unexpected(not_the_json(error.what()));
    }
  }
  template <class T>  // says what is missing
  [[nodiscard]] Result<T> json(std::optional<std::size_t> = std::nullopt) {
    detail::require_json_codec<JsonDecodable<T>>();
    std::unreachable();
  }
  // Fields behind a body in chunks; none before its end.
  [[nodiscard]] HeaderLines trailers() const;

  // The connection, after a status of 101 that ClientRequest::set_upgrade() has asked for; Errc::kBadMessage otherwise. It is
  // valid as long as this response, whose end closes it. The context and the timeouts of the call do not count any more.
  [[nodiscard]] Result<HijackedStream> hijack();

  [[nodiscard]] ClientExchange& exchange() { return *exchange_; }  // for other parts of the library

 private:
  [[nodiscard]] Result<std::string> json_text(std::optional<std::size_t> bytes_max);
  [[nodiscard]] Error not_the_json(std::string_view why) const;

  struct GiveBack {
    void operator()(ClientExchange* exchange) const;
  };
  std::unique_ptr<ClientExchange, GiveBack> exchange_;
};

struct ClientStats {
  std::size_t open = 0;  // connections, the idle ones included
  std::size_t idle = 0;
  std::size_t waiting = 0;  // callers, for a place
  std::uint64_t dialled = 0;
  std::uint64_t requests = 0;  // sent, those of redirects and repetitions included
  std::uint64_t repeated = 0;  // because a kept connection was gone

  // Connections with a request in progress.
  [[nodiscard]] std::size_t busy() const { return open - std::min(idle, open); }
};

class Client {
 public:
  // Throws std::invalid_argument if headers_max is above 256, or decompress_ratio_max is 0; for a malformed
  // proxy, or one together with address, dial or dial_tls.
  explicit Client(ClientOptions options = {});
  // Closes idle connections. Responses that are still being read stay valid.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] Result<ClientResponse> send(const Context& ctx, ClientRequest& request);
  [[nodiscard]] Result<ClientResponse> send(const Context& ctx, ClientRequest&& request) {
    return send(ctx, request);
  }
  [[nodiscard]] Result<ClientResponse> get(const Context& ctx, std::string_view url);
  [[nodiscard]] Result<ClientResponse> head(const Context& ctx, std::string_view url);
  [[nodiscard]] Result<ClientResponse> post(const Context& ctx, std::string_view url,
                                            std::string_view content_type, std::string body);

  void close_idle();
  [[nodiscard]] ClientStats stats() const;

 private:
  const std::shared_ptr<ClientState> state_;
};

}  // namespace tuza::http
