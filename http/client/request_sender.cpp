#include <tuza/http/client/request_sender.h>

#include <sys/uio.h>
#include <tuza/http/client/body_splicer.h>
#include <tuza/http/codec/codec.h>
#include <tuza/http/wire/number.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace tuza::http {
namespace {

// A socket takes this much at once, unless its peer has stopped reading: sending it does not wait for the server.
constexpr std::size_t kOneWriteMax = 64 << 10;
// Of a body's source, at a time.
constexpr std::size_t kSourcePiece = 16 << 10;

// Methods whose meaning needs no body: without one, nothing is said about it (RFC 9110 8.6).
bool expects_body(Method method) {
  return method == Method::kPost || method == Method::kPut || method == Method::kPatch;
}

}  // namespace

RequestSender::RequestSender(net::Conn& conn, const Hop& hop, const ClientOptions& options, std::string& out)
    : conn_(conn), request_(&hop.request), text_(hop.request.text_), with_body_(hop.with_body), out_(out) {
  append_head(hop, options);
}

bool RequestSender::fits_one_write() const {
  return !with_body_ || (text_ != nullptr && out_.size() + text_->size() <= kOneWriteMax);
}

bool RequestSender::let_go_of_request() {
  if (text_ == nullptr) return false;
  note_sent();
  request_ = nullptr;
  return true;
}

void RequestSender::note_sent() {
  if (request_ != nullptr) request_->sent_ = true;
}

void RequestSender::append_head(const Hop& hop, const ClientOptions& options) {
  out_.clear();
  const bool forwarded = hop.forwarded();
  out_.append(name(hop.method)).append(" ");
  if (forwarded) out_ += hop.url().origin();  // RFC 9112 3.2.2: a proxy needs all of the URL
  out_.append(hop.url().target).append(" HTTP/1.1\r\n");
  const HeaderLines fields(hop.fields());
  if (!fields.find("Host")) out_.append("Host: ").append(hop.url().authority).append("\r\n");
  if (!options.user_agent.empty() && !fields.find("User-Agent"))
    out_.append("User-Agent: ").append(options.user_agent).append("\r\n");
  if (forwarded && !hop.proxy->authorization.empty())
    out_.append("Proxy-Authorization: ").append(hop.proxy->authorization).append("\r\n");
  if (hop.offers_codings) out_.append("Accept-Encoding: ").append(known_codings()).append("\r\n");
  if (!hop.upgrade.empty())
    out_.append("Connection: Upgrade\r\nUpgrade: ").append(hop.upgrade).append("\r\n");
  out_ += hop.fields();
  append_body_fields(hop);
  out_ += "\r\n";
}

void RequestSender::append_body_fields(const Hop& hop) {
  if (!hop.with_body) {
    if (expects_body(hop.method)) out_ += "Content-Length: 0\r\n";
    return;
  }
  const std::optional<std::uint64_t> length =
      text_ != nullptr ? std::optional<std::uint64_t>(text_->size()) : request_->length_;
  if (length) {
    out_ += "Content-Length: ";
    append_number(out_, *length);
    out_ += "\r\n";
  } else {
    out_ += "Transfer-Encoding: chunked\r\n";
  }
  if (hop.asks_first) out_ += "Expect: 100-continue\r\n";
}

Result<void> RequestSender::send_head(const Context& ctx) {
  note_sent();
  const Result<void> sent = conn_.write_all(ctx, out_);
  out_.clear();
  return sent;
}

// With the head, if that has not been sent.
Result<void> RequestSender::send_body(const Context& ctx) {
  if (!with_body_) return send_head(ctx);
  if (text_ == nullptr) return send_from_source(ctx);
  note_sent();
  std::array<struct iovec, 2> pieces{
      {{out_.data(), out_.size()}, {const_cast<char*>(text_->data()), text_->size()}}};
  const Result<void> sent = conn_.writev_all(ctx, pieces);
  out_.clear();
  return sent;
}

void RequestSender::begin_body() {
  if (request_ != nullptr && request_->splicer_ != nullptr) request_->splicer_->begins();
}

Result<void> RequestSender::send_from_source(const Context& ctx) {
  if (request_->opener_) {
    Result<ClientRequest::BodySource> opened = request_->opener_();
    if (!opened) return source_failed(opened.error());
    request_->source_ = *std::move(opened);
  }
  std::array<std::byte, kSourcePiece> memory;
  std::uint64_t left = request_->length_.value_or(0);
  for (;;) {
    std::span<std::byte> room = memory;
    if (request_->length_)
      room = room.first(static_cast<std::size_t>(std::min<std::uint64_t>(room.size(), left)));
    // The head of an empty body; otherwise nothing, and the server may have answered already.
    if (request_->length_ && left == 0) return out_.empty() ? Result<void>() : send_head(ctx);
    const Result<std::size_t> n = request_->source_(ctx, room);
    if (!n && ctx.done()) return std::unexpected(n.error());
    if (!n) return source_failed(n.error());
    if (*n > room.size())
      return source_failed(Error(Errc::kOther, "read body", "its source says more than it had room for"));
    if (*n == 0) break;
    if (request_->length_) {
      left -= *n;
    } else {
      append_chunk_size(out_, *n);
    }
    const std::string_view piece(reinterpret_cast<const char*>(memory.data()), *n);
    if (Result<void> sent = send_piece(ctx, piece); !sent) return sent;
    if (*n < kSourcePiece || request_->splicer_ == nullptr) continue;
    if (Result<void> spliced = splice_more(ctx, left); !spliced) return spliced;
  }
  if (request_->length_)
    return source_failed(Error(Errc::kEndOfStream, "read body", "its source has less than its length"));
  out_.append("0\r\n").append(request_->trailers_).append("\r\n");
  return send_head(ctx);
}

// More of the body that does not enter the process, as long as it comes in large portions.
Result<void> RequestSender::splice_more(const Context& ctx, std::uint64_t& left) {
  while (left > 0) {
    const net::Spliced spliced = request_->splicer_->splice_to(conn_, left, ctx);
    left -= spliced.bytes;
    if (spliced.write_error) return std::unexpected(*spliced.write_error);
    if (spliced.read_error)
      return ctx.done() ? std::unexpected(*spliced.read_error) : source_failed(*spliced.read_error);
    if (spliced.bytes < kSourcePiece) break;
  }
  return {};
}

// What is in `out`, and behind it a piece of the body.
Result<void> RequestSender::send_piece(const Context& ctx, std::string_view piece) {
  static constexpr std::string_view kEnd = "\r\n";
  note_sent();
  const bool chunked = !request_->length_;
  std::array<struct iovec, 3> pieces{{{out_.data(), out_.size()},
                                      {const_cast<char*>(piece.data()), piece.size()},
                                      {const_cast<char*>(kEnd.data()), chunked ? kEnd.size() : 0}}};
  const Result<void> sent = conn_.writev_all(ctx, pieces);
  out_.clear();
  return sent;
}

std::unexpected<Error> RequestSender::source_failed(Error error) {
  source_error_ = error;
  return std::unexpected(std::move(error));
}

}  // namespace tuza::http
