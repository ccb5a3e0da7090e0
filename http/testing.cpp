#include <tuza/http/testing.h>

#include <tuza/http/serve/body_budget.h>
#include <tuza/http/serve/exchange.h>
#include <tuza/http/serve/head_limits.h>
#include <tuza/http/wire/chars.h>
#include <tuza/http/wire/field.h>
#include <tuza/http/wire/framing.h>
#include <tuza/netpoll/files/file_calls.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/sync/wait_group.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <span>

namespace tuza::http::testing {
namespace {

std::string head_of(std::string_view request, const CallOptions& options) {
  std::string head = std::string(request) + " HTTP/1.1\r\n";
  bool has_host = false, has_length = false;
  for (const auto& [name, value] : options.headers) {
    append_field_line(head, name, value);
    has_host = has_host || equals_ignoring_case(name, "Host");
    has_length = has_length || equals_ignoring_case(name, "Content-Length");
  }
  if (!has_host) head += "Host: example.com\r\n";
  if (options.chunked || !options.trailers.empty() || (options.next_piece && !has_length)) {
    head += "Transfer-Encoding: chunked\r\n";
  } else if (!options.body.empty() && !has_length) {
    head += "Content-Length: " + std::to_string(options.body.size()) + "\r\n";
  }
  return head + "\r\n";
}

class MemoryExchange final : public Exchange {
 public:
  // `bodies`: the budget of a server that has nothing else to do.
  MemoryExchange(const CallOptions& options, BodyBudget& bodies)
      : Exchange(&bodies), options_(options), unread_(options.body) {
    buffers_ = memory_.get();
    if (options.client_reads == 0) gone_ = true;
  }

  CallResult call(const Handler& handler, std::string_view request) {
    to_head_ = request.starts_with("HEAD ");
    if (const std::optional<BadRequest> bad = parse(head_of(request, options_))) {
      refuse(*bad);
    } else {
      answer(handler);
    }
    return std::move(result_);
  }

  Result<std::size_t> read_body(std::span<std::byte> into, const Context* ctx) override {
    if (ctx != nullptr && ctx->done()) return std::unexpected(ctx->cause());
    if (unreadable_ || !has_arrived(into.size())) return unreadable();
    const std::size_t n = std::min(into.size(), unread_.size());
    if (n > 0) std::memcpy(into.data(), unread_.data(), n);
    unread_.remove_prefix(n);
    body_ended_ = body_ended_ || (n == 0 && !into.empty());
    read_ += n;
    if (read_ <= body_bytes_max_) return n;
    unreadable_ = {413, "request body too large", 0};
    return unreadable();
  }
  std::string_view remote() override {
    if (remote_.empty()) remote_ = net::to_string(peer());
    return remote_;
  }
  Result<net::Endpoint> remote_endpoint() override { return peer(); }
  bool body_ended() override { return body_ended_; }
  bool separate_directions() override { return !unreadable_ && !gone_; }
  std::optional<net::TlsInfo> tls_info() override { return options_.tls; }

 private:
  std::unexpected<Error> unreadable() const {
    return std::unexpected(Error(Errc::kBadMessage, "read body", std::string(unreadable_->text)));
  }
  // Gets the next piece if the handler has all of the last one. False: the body cannot be read.
  bool has_arrived(std::size_t wanted) {
    if (wanted == 0 || !unread_.empty() || body_ended_) return true;
    const RequestHead& head = buffers_->head;
    const bool all = !head.chunked && read_ >= head.content_length;
    if (!gone_ && options_.next_piece && !all) {
      if (Result<std::string> piece = options_.next_piece()) {
        piece_ = *std::move(piece);
        unread_ = piece_;
        // What is beyond its length belongs to the next request.
        if (!head.chunked) unread_ = unread_.substr(0, head.content_length - read_);
      } else {
        leave();
      }
    }
    const bool cut_off = gone_ || (unread_.empty() && !head.chunked && read_ < head.content_length);
    if (cut_off) unreadable_ = {400, "request body truncated", 0};
    return !cut_off;
  }
  void leave() {
    gone_ = true;
    if (contexts_.context) leave_context();
  }
  void leave_context() { canceller_(Error(Errc::kClosed, "peer")); }
  // As much of the body as the client takes. False: it has gone.
  bool deliver(std::string_view data) {
    if (gone_) return false;
    const std::size_t room = options_.client_reads.value_or(std::string::npos) - result_.body.size();
    result_.body += data.substr(0, room);
    if (data.size() >= room) leave();
    return data.size() <= room;
  }
  static std::unexpected<Error> not_written() { return std::unexpected(Error(Errc::kClosed, "write")); }

  [[nodiscard]] net::Endpoint peer() const {
    // An address of RFC 5737, which is for documentation.
    return options_.peer.value_or(net::Endpoint(net::IpAddress(net::IpAddress::V4Bytes{192, 0, 2, 1}), 1234));
  }

  std::optional<BadRequest> parse(std::string_view text) {
    Input& input = buffers_->input;
    input.append(std::as_bytes(std::span(text)));
    buffers_->parser.begin(buffers_->head, limits_);
    const auto complete = buffers_->parser.feed_head(input.request(), text.size());
    if (!complete) return refusal(complete.error());
    if (!*complete || buffers_->head.bytes != text.size()) return BadRequest{400, "malformed request", 0};
    input.consume(text.size());
    input.pin();
    buffers_->head_base = input.request();
    if (const auto framed = frame_request(input.request(), buffers_->head, options_.server.connect); !framed)
      return refusal(framed.error());
    if (buffers_->head.https_target && !options_.tls) {
      return BadRequest{421, "https target on a plain connection", 0};
    }
    body_bytes_max_ = options_.server.body_bytes_max;
    if (buffers_->head.content_length > body_bytes_max_) {
      too_large_ = true;
      unreadable_ = {413, "request body too large", 0};
    }
    return buffers_->head.chunked ? parse_trailers() : std::nullopt;
  }

  std::optional<BadRequest> parse_trailers() {
    std::string text = "0\r\n";
    for (const auto& [name, value] : options_.trailers) append_field_line(text, name, value);
    text += "\r\n";
    buffers_->chunks.begin(options_.server.chunk_overhead_bytes_max);
    const auto parsed = buffers_->chunks.feed(text);
    return parsed ? std::nullopt : std::optional(refusal(parsed.error()));
  }

  // nullopt: goexit().
  std::optional<Outcome> run_aside(const Handler& handler) {
    if (goroutine_id() == 0) return run(handler);
    std::optional<Outcome> outcome;
    WaitGroup handling;
    handling.go([&] { outcome = run(handler); });
    handling.wait();
    return outcome;
  }

  void answer(const Handler& handler) {
    const std::optional<Outcome> outcome = run_aside(handler);
    result_.streamed = response_.started && !response_.finished;
    if (contexts_.context) canceller_();
    if (outcome == Outcome::kReturned && unreadable_ && !response_.begun) return refuse(*unreadable_);
    if (!response_.started && (outcome || response_.finished)) give_held_back();
    if (!head_only() && !gone_) {
      for (const auto& [name, value] : HeaderLines(buffers_->trailers))
        result_.trailers.emplace_back(name, value);
    }
    divide();
    const bool short_of =
        !head_only() && response_.declared_length.value_or(response_.written) != response_.written;
    // What ends the handler behind the last byte of a known number breaks nothing off, but ends the connection.
    const bool cut_off = !outcome || outcome == Outcome::kThrownTooLate;
    const bool known_length = response_.finished || response_.declared_length;
    // A client that has all of a known length misses nothing.
    const bool gone_before = gone_ && (!known_length || result_.body.size() < response_.written);
    result_.complete = result_.status != 0 && !gone_before && !short_of && (!cut_off || known_length);
    result_.closes = response_.close || !result_.complete || cut_off || !buffers_->head.keep_alive;
  }

  void give_held_back() {
    const std::uint64_t held = head_only() ? response_.written : buffers_->body.size();
    const std::optional<std::uint64_t> length =
        response_.finished ? response_.declared_length : response_.declared_length.value_or(held);
    start(buffers_->trailers.empty() || head_only() ? length : std::nullopt);
    if (!head_only()) deliver(buffers_->body);
  }

  // Into the pieces that were flushed, and the rest.
  void divide() {
    flushed_.push_back(result_.body.size());
    std::size_t begin = 0;
    for (const std::size_t end : flushed_) {
      if (end > begin) result_.pieces.emplace_back(result_.body, begin, end - begin);
      begin = end;
    }
  }

  void refuse(const BadRequest& bad) {
    drop_prepared_body();
    response_.status = bad.status;
    set_header("Content-Type", "text/plain; charset=utf-8");
    if (bad.status == 503) set_header("Retry-After", "1");
    const std::string text = std::string(bad.text) + "\n";
    start(text.size());
    if (!to_head_) deliver(text);
    divide();
    result_.complete = !gone_;
    result_.closes = true;
  }

  Result<void> send_interim_head(int status, std::string_view lines, const Context*) override {
    if (gone_) return not_written();
    InterimResponse& sent = result_.interim.emplace_back(status);
    for (const auto& [name, value] : HeaderLines(lines)) sent.headers.emplace_back(name, value);
    return {};
  }
  void start(const std::optional<std::uint64_t>& length) override {
    response_.begun = response_.started = true;
    if (gone_) return;
    result_.status = response_.status;
    for (const auto& [name, value] : HeaderLines(buffers_->extra)) result_.headers.emplace_back(name, value);
    if (length && body_allowed()) result_.headers.emplace_back("Content-Length", std::to_string(*length));
  }
  Result<void> send(std::string_view data, const Context*) override {
    return deliver(data) ? Result<void>() : not_written();
  }
  Result<void> send_file(net::FileSlice& slice, const Context*) override {
    std::string data(slice.length, '\0');
    const long n = tuza::detail::read_at(slice.fd, std::span(data), slice.offset);
    const auto got = static_cast<std::size_t>(std::max(n, 0L));
    data.resize(got);
    if (!deliver(data)) return not_written();
    slice.offset += got;
    slice.length -= got;
    if (slice.length == 0) return {};
    return std::unexpected(Error(Errc::kEndOfStream, "read", "the file has become shorter"));
  }
  Result<void> send_all(const Context* ctx) override {
    if (ctx != nullptr && ctx->done()) {
      leave();  // as a write that fails
      return std::unexpected(ctx->cause());
    }
    if (gone_) return not_written();
    flushed_.push_back(result_.body.size());
    return {};
  }
  Context make_context() override {
    auto made = options_.server.request_timeout.count() > 0
                    ? with_timeout(options_.context, options_.server.request_timeout)
                    : with_cancel(options_.context);
    canceller_ = std::move(made.canceller());
    if (gone_) leave_context();
    return made.ctx();
  }
  [[nodiscard]] Context server_shutdown() override { return options_.shutdown; }
  Result<HijackedStream> hand_over() override {
    return std::unexpected(Error(Errc::kOther, "hijack", "a request in memory has no connection"));
  }
  [[nodiscard]] bool broken() const override { return gone_; }
  [[nodiscard]] int unreadable_status() const override { return unreadable_ ? unreadable_->status : 0; }
  void refuse_body(const BadRequest& bad) override { unreadable_ = bad; }
  void accept_body() override { unreadable_.reset(); }
  void thrown() override { result_.exception = std::current_exception(); }

  const CallOptions& options_;
  const HeadLimits limits_ = head_limits(options_.server);
  const std::unique_ptr<ExchangeBuffers> memory_ = std::make_unique<ExchangeBuffers>();
  std::string piece_;  // the last of the body
  std::string_view unread_;
  std::uint64_t read_ = 0;
  bool body_ended_ = false;
  std::optional<BadRequest> unreadable_;
  std::string remote_;
  bool to_head_ = false;
  std::atomic<bool> gone_ = false;    // the client; by the goroutine that reads or by the one that writes
  std::vector<std::size_t> flushed_;  // how long the body was each time
  Canceller canceller_;
  CallResult result_;
};

}  // namespace

std::optional<std::string_view> CallResult::header(std::string_view name) const {
  for (const auto& [field, value] : headers) {
    if (equals_ignoring_case(field, name)) return value;
  }
  return std::nullopt;
}

CallResult call_handler(const Handler& handler, std::string_view request, const CallOptions& options) {
  check(options.server);
  BodyBudget bodies(options.server.bodies_bytes_max);
  return MemoryExchange(options, bodies).call(handler, request);
}

}  // namespace tuza::http::testing
