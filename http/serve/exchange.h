// One request and its response, whatever carries them: a connection of HTTP/1.1 (RequestLoop), or the memory of a test
// (http/testing.cpp).
//
//     Request, ResponseWriter ----> Exchange <---- RequestLoop | testing::MemoryExchange
//                                   the rules       the bytes
//
// What is the same for every carrier is here and not virtual: the order of calls, what may stand in a field, how long a
// body is held back, what an error keeps. A carrier moves bytes. A response that is sent whole and small is held until
// the handler has returned, so that neither it nor a request without a body costs a virtual call.
//
// Thread-unsafe: owned by the handler's goroutine.
#pragma once

#include <tuza/http/hijacked_stream.h>
#include <tuza/http/serve/exchange_buffers.h>
#include <tuza/http/serve/refusal.h>
#include <tuza/netpoll/endpoint.h>
#include <tuza/netpoll/file_slice.h>
#include <tuza/netpoll/poll/splice.h>
#include <tuza/netpoll/tls.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace tuza::net {
class Conn;
}

namespace tuza::http {

class BodyBudget;
class BodyFilter;
class BodySource;
class Handler;
namespace detail {
class HeadHook;
}

// For a call that waits where the handler does not wait by itself: the server's own limits, write_timeout for instance, end it,
// and the time of the request does not.
inline const Context kServerLimits;

class Exchange {
 public:
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  // In all calls below, a null `ctx` is that of a handler that gives none: a wait ends when the time of the request is over
  // (the deadline of context(), which need not be made for that), and not with the client's side of the stream.

  // -- For Request.
  [[nodiscard]] ExchangeBuffers& buffers() { return *buffers_; }
  // As Request::read_body(); `ctx` may be null. Parks.
  virtual Result<std::size_t> read_body(std::span<std::byte> into, const Context* ctx) = 0;
  // The same, through what middleware has put in between (http/serve/body_filter.h).
  Result<std::size_t> take_body(std::span<std::byte> into, const Context* ctx) {
    if (source_ != nullptr) [[unlikely]]
      return take_from_source(into, ctx);
    return read_body(into, ctx);
  }
  Result<std::string_view> pull_body(const Context* ctx);
  // Before so many bytes of the body are held at once. An error: the server holds too many, and refuses this request.
  [[nodiscard]] Result<void> hold_body(std::size_t bytes);
  // The budget for what is held besides the body: its user takes bytes and gives them back; null: no limit.
  [[nodiscard]] BodyBudget* body_budget() { return bodies_; }
  [[nodiscard]] virtual std::string_view remote() = 0;
  [[nodiscard]] virtual Result<net::Endpoint> remote_endpoint() = 0;
  // Whether the whole body has been read.
  [[nodiscard]] virtual bool body_ended() = 0;
  // From now on, one goroutine may read the body while another one writes the response, until the handler returns. A client
  // that waits for "100 Continue" gets it. A response that begins before the end of the body ends the connection. False: the
  // body cannot be read. Parks.
  [[nodiscard]] virtual bool separate_directions() = 0;
  // nullopt: not TLS.
  [[nodiscard]] virtual std::optional<net::TlsInfo> tls_info() = 0;
  // Made at the first call; ends when the exchange ends, at the latest.
  [[nodiscard]] const Context& context() {
    if (!contexts_.context) contexts_.context.emplace(make_context());
    return *contexts_.context;
  }

  // As Request::until_shutdown().
  [[nodiscard]] const Context& until_shutdown();
  // Ends when the server begins to shut down, and at nothing else.
  [[nodiscard]] virtual Context server_shutdown() = 0;

  // -- For ResponseWriter.
  // Discards status, fields and body that were set but not sent; close() stays in effect.
  void drop_prepared_response();
  // The same, but keeps the fields that do not describe the body. Every answer that takes the place of another one begins
  // with this, so that what middleware has set (CORS, HSTS, an id) is on it, too.
  void drop_prepared_body();
  void set_status(int code);
  void set_header(std::string_view name, std::string_view value);
  void add_header(std::string_view name, std::string_view value);
  // For a caller that adds a field to buffers().extra itself, before the head: one that a parser has accepted, and that is neither
  // Content-Length nor one of the connection.
  void note_header(std::string_view name);
  // Of a 426: what it names (RFC 9110 15.5.22), and that this field is for the next hop.
  void offer_upgrade(std::string_view protocols);
  void remove_header(std::string_view name);
  void add_trailer(std::string_view name, std::string_view value);
  // As ResponseWriter::early_hints().
  Result<void> early_hints(std::string_view link);
  // An interim response (1xx), at once, in front of the response: nothing once that has begun, and to HTTP/1.0. `lines`: "Name:
  // value\r\n", well formed. Parks.
  Result<void> send_interim(int status, std::string_view lines, const Context* ctx);
  [[nodiscard]] std::optional<std::string_view> response_header(std::string_view name);
  void close_after_response() { response_.close = true; }
  void send_whole(std::string_view content_type, std::string_view body);
  Result<void> write_body(std::string_view data, const Context* ctx);
  // The same for a part of a file; the length of the whole body must have been set. On an error the client sees the
  // response break off.
  Result<void> write_file(net::FileSlice slice, const Context* ctx);
  Result<void> flush_response(const Context* ctx);
  // Moves up to `most` bytes of the body from another connection past this process, if nothing in between wants to see them:
  // net::splice_received(), after what was written so far. The length of the whole body must have been set.
  net::Spliced splice_body(net::Conn& from, std::uint64_t most, const Context& ctx);
  // The same for the body of the request, to another connection, behind what was read so far. Waits for more of it first. An
  // error of reading is that of read_body().
  net::Spliced splice_request(net::Conn& to, std::uint64_t most, const Context& ctx) {
    return source_ == nullptr ? splice_to(to, most, ctx) : net::Spliced{.possible = false};
  }
  // As ResponseWriter::hijack().
  Result<HijackedStream> hijack(int status);
  [[nodiscard]] bool begun() const { return response_.begun; }
  // See ResponseWriter.
  [[nodiscard]] int status_code() const;
  [[nodiscard]] std::uint64_t bytes_written() const;

  // The announced body is larger than the server allows: nothing of it can be read. Whoever calls the handler that is meant
  // leaves it out, and the server answers with 413 when middleware has returned.
  [[nodiscard]] bool too_large() const { return too_large_; }

  // -- For middleware.
  // The server's limit on the body, for this request, unless it is higher already. Takes back that the body is too large.
  void raise_body_limit(std::uint64_t bytes_max);
  // An access log has a line of this request, so that ServerOptions::on_refused need not be told.
  void set_logged() { logged_ = true; }
  // Takes the place of the peer in Request::remote() and remote_endpoint(), for the rest of the request.
  void set_client(const net::Endpoint& endpoint) { buffers_->client = {endpoint, net::to_string(endpoint)}; }
  // context(), and what until_shutdown() has made of it. Given ones take the place of those that are there, for the handlers
  // behind; the result is to be put back.
  struct UntilShutdown;
  struct DropUntilShutdown {
    void operator()(UntilShutdown* until) const;
  };
  struct Contexts {
    std::optional<Context> context{};
    std::unique_ptr<UntilShutdown, DropUntilShutdown> until_shutdown{};
  };
  Contexts exchange_contexts(Contexts contexts) { return std::exchange(contexts_, std::move(contexts)); }
  // Whether a handler that fails need not be answered for: the server answers for a body that cannot be read, and nobody
  // hears an answer where the client has gone.
  [[nodiscard]] bool needs_no_answer() const {
    return broken() || (unreadable_status() != 0 && !response_.begun);
  }
  // A line of the log for what a handler has thrown, which middleware answers instead of the server. In a catch block.
  void report_thrown(std::string_view what);
  // Adds whole lines "Name: value\r\n" that are known to be well formed, and are none of those that the server looks at
  // (Content-Type, Date, Server and others). False: there are other fields, which they might double.
  bool set_first_headers(std::string_view lines);

  // The handler has returned: its response can be changed again, if the carrier has nothing of it; false otherwise.
  // Call settle_response() afterwards.
  [[nodiscard]] bool reopen_response();
  void settle_response() { response_.begun = response_.begun || response_.finished; }
  // What is held back of the body; empty for HEAD.
  [[nodiscard]] std::string_view held_body() const { return buffers_->body; }
  void replace_held_body(std::string_view body);
  // The length of the whole body, if the handler has said it.
  [[nodiscard]] std::optional<std::uint64_t> declared_length() const { return response_.declared_length; }
  // Bytes of the body that the handler has written, also where they go nowhere (HEAD).
  [[nodiscard]] std::uint64_t written() const { return response_.written; }
  void declare_length(std::uint64_t bytes) { response_.declared_length = bytes; }
  // A response to HEAD whose length nobody knows.
  void forget_length();
  [[nodiscard]] bool wrote_all_it_declared() const;
  // Whether a body of this response reaches the client.
  [[nodiscard]] bool sends_body() const { return !head_only(); }
  // For BodyFilter, BodySource and HeadHook: what is installed, and what was before.
  [[nodiscard]] BodyFilter* filter() const { return filter_; }
  void set_filter(BodyFilter* filter) { filter_ = filter; }
  BodySource* exchange_source(BodySource* source) { return std::exchange(source_, source); }
  detail::HeadHook* exchange_head_hook(detail::HeadHook* hook) { return std::exchange(head_hook_, hook); }
  Result<void> send_filtered(std::string_view data, const Context* ctx) { return send(data, ctx); }
  void end_filtered(std::uint64_t bytes);

 protected:
  // The response in progress; between requests, the response to bad input, if it becomes necessary.
  struct Response {
    int status = 200;
    bool begun = false;     // status and fields are final
    bool started = false;   // the carrier has them
    bool finished = false;  // nothing may be written any more
    bool has_content_type = false;
    bool has_date = false;
    bool has_server = false;
    bool close = false;
    std::optional<std::uint64_t> declared_length;  // the handler has set Content-Length
    std::uint64_t written = 0;                     // bytes of body
  };

  // `bodies`: null for no limit.
  explicit Exchange(BodyBudget* bodies) : bodies_(bodies) {}
  ~Exchange() { release_body(); }
  // The body is held no longer.
  void release_body() {
    if (held_bytes_ != 0) [[unlikely]]
      give_body_back();
  }

  // A body up to this size is held back until the handler has returned, so that its length can be sent.
  static constexpr std::size_t kHeldBackMax = 16 << 10;

  // Calls the handler. An exception becomes a line of the log, and a 500 if the response has not begun. goexit() passes.
  enum class Outcome : std::uint8_t { kReturned, kThrown, kThrownTooLate };
  Outcome run(const Handler& handler);

  // -- What a carrier does. The calls come in the order send_interim_head..., start, send..., and each may park.
  virtual Result<void> send_interim_head(int status, std::string_view lines, const Context* ctx) = 0;
  // The status and the fields are final. `length`: of the whole body; nullopt: not known.
  virtual void start(const std::optional<std::uint64_t>& length) = 0;
  // The next bytes of the body; none if the response has no body.
  virtual Result<void> send(std::string_view data, const Context* ctx) = 0;
  // The same for a part of a file, behind what was given to the carrier so far; the length of the whole body is known.
  // Takes off `slice` what was sent.
  virtual Result<void> send_file(net::FileSlice& slice, const Context* ctx) = 0;
  // The same for bytes that another connection has received.
  virtual net::Spliced splice_from(net::Conn& /*from*/, std::uint64_t /*most*/, const Context& /*ctx*/) {
    return {.possible = false};
  }
  // The body of the request, as long as nobody has to look at it.
  virtual net::Spliced splice_to(net::Conn& /*to*/, std::uint64_t /*most*/, const Context& /*ctx*/) {
    return {.possible = false};
  }
  // Sends what was given to the carrier so far.
  virtual Result<void> send_all(const Context* ctx) = 0;
  // A context for this request, which the end of the request ends (end_context()).
  virtual Context make_context() = 0;
  // Hands over the byte stream, after the answers to earlier requests. An error leaves the response as it is.
  virtual Result<HijackedStream> hand_over() = 0;
  // True if nothing can be sent any more.
  [[nodiscard]] virtual bool broken() const = 0;
  // The status with which the server answers if the body cannot be read, or 0.
  [[nodiscard]] virtual int unreadable_status() const = 0;
  // The body is not read any more: the request is answered with this, unless the handler answers.
  virtual void refuse_body(const BadRequest& bad) = 0;
  // The body may be read after all: nothing of it has been.
  virtual void accept_body() = 0;
  // The exception of a handler, while it is handled.
  virtual void thrown() {}

  // RFC 9110 9.3.6: what follows the head belongs to the tunnel.
  [[nodiscard]] bool opens_tunnel() const {
    return buffers_->head.method == Method::kConnect && response_.status >= 200 && response_.status < 300;
  }
  // Whether this status has a body, for any method but HEAD.
  [[nodiscard]] bool body_allowed() const {
    const int status = response_.status;
    const bool has_body = status == 200 || (status > 200 && status != 204 && status != 205 && status != 304);
    return has_body && !opens_tunnel();
  }
  // Then the response is sent in chunks, whatever its length.
  [[nodiscard]] bool sends_trailers() const {
    return !buffers_->trailers.empty() && !head_only() && buffers_->head.version_minor >= 1;
  }
  [[nodiscard]] bool head_only() const { return buffers_->head.method == Method::kHead || !body_allowed(); }

  ExchangeBuffers* buffers_ = nullptr;
  std::uint64_t body_bytes_max_ = 0;  // of the request in progress; so are too_large_ and logged_
  bool too_large_ = false;
  bool logged_ = false;
  Response response_;
  Contexts contexts_;

 private:
  void set_vary(std::string_view value);
  void begin_stream(const Context* ctx);
  Result<void> send_piece(std::string_view data, const Context* ctx);
  Result<void> hold_back(net::FileSlice& slice);
  Result<void> filter_file(net::FileSlice& slice, const Context* ctx);
  Result<std::size_t> take_from_source(std::span<std::byte> into, const Context* ctx);

  void give_body_back();

  BodyBudget* const bodies_;
  std::size_t held_bytes_ = 0;    // of bodies_
  BodyFilter* filter_ = nullptr;  // null: none, or it does nothing with this response
  BodySource* source_ = nullptr;
  detail::HeadHook* head_hook_ = nullptr;  // the innermost
};

}  // namespace tuza::http
