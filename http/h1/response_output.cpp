// Writes a response in HTTP/1.1: head, body with a length or in chunks, end.
#include <tuza/http/h1/early_sending.h>
#include <tuza/http/h1/request_loop.h>
#include <tuza/http/status.h>
#include <tuza/http/wire/date.h>
#include <tuza/http/wire/number.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/sched/detail/coarse_clock.h>
#include <tuza/sched/time/clock.h>

#include <sys/uio.h>

#include <array>
#include <charconv>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tuza::http {
namespace {

// Smaller pieces of a stream are collected up to this size; larger ones are sent in place, without a copy.
constexpr std::size_t kStreamedPiece = 16 << 10;

// Puts texts one behind the other into memory that has room for them. Eight of them are a head: a constant costs a store or
// two here, where append() costs a call.
class HeadText {
 public:
  explicit HeadText(char* at) : at_(at) {}
  template <std::size_t N>
  void put(const char (&text)[N]) {
    std::memcpy(at_, text, N - 1);
    at_ += N - 1;
  }
  template <std::size_t N>
  void put(std::span<const char, N> text) {
    std::memcpy(at_, text.data(), N);
    at_ += N;
  }
  void put(std::string_view text) { at_ += text.copy(at_, text.size()); }
  void put(std::uint64_t number) { at_ = std::to_chars(at_, at_ + kDigitsMax, number).ptr; }
  [[nodiscard]] char* end() const { return at_; }

  static constexpr std::size_t kDigitsMax = 20;

 private:
  char* at_;
};

// Of the parts of a head whose size is known.
constexpr std::size_t kKnownBytesMax = sizeof "HTTP/1.1 200 OK\r\n" + sizeof "Server: \r\n" +
                                       Date::kLineBytes + sizeof "Transfer-Encoding: \r\n" +
                                       HeadText::kDigitsMax + sizeof "Connection: keep-alive\r\n\r\n";

void append_status_line(std::string& out, int status) {
  out += "HTTP/1.1 ";
  append_number(out, static_cast<std::uint64_t>(status));
  out += ' ';
  out += reason_phrase(status);
  out += "\r\n";
}

}  // namespace

void RequestLoop::limit_writes(const Context* ctx) {
  const net::TimePoint until = ctx == nullptr ? patience() : net::kNoDeadline;
  const bool limited = until != net::kNoDeadline;
  if (!limited && !writes_limited_) return;
  writes_limited_ = limited;
  net::detail::ConnParts::descriptor(conn()).set_write_limit(net::Deadline::to_ns(until));
}

Result<void> RequestLoop::write_result(bool written, const Context* ctx) const {
  if (written) return {};
  if (ctx != nullptr && ctx->done()) return std::unexpected(ctx->cause());
  const bool late = ctx == nullptr && patience() <= tuza::now();
  return std::unexpected(Error(late ? Errc::kTimeout : Errc::kClosed, "write"));
}

// Appends the head. The body has a length, or is chunked, or is ended by the end of the connection.
void RequestLoop::append_head(const std::optional<std::uint64_t>& length) {
  const bool has_body = body_allowed();
  if (has_body && !length) {
    framing_.chunked = buffers_->head.version_minor >= 1;
    framing_.ends_with_connection = !framing_.chunked;
    response_.close = response_.close || framing_.ends_with_connection;
  }
  if (response_.close || opens_tunnel()) keep_alive_ = false;
  const std::string& extra = buffers_->extra;
  std::string& out = buffers_->out;
  const bool usual = response_.status == 200;
  if (!usual) append_status_line(out, response_.status);
  const std::size_t had = out.size();
  const std::size_t most = kKnownBytesMax + options_.server_name.size() + extra.size();
  out.resize_and_overwrite(had + most, [&](char* begin, std::size_t) {
    HeadText text(begin + had);
    if (usual) text.put("HTTP/1.1 200 OK\r\n");
    if (!response_.has_server && !options_.server_name.empty()) {
      text.put("Server: ");
      text.put(options_.server_name);
      text.put("\r\n");
    }
    if (!response_.has_date) {
      const std::string_view line = buffers_->date.line(coarse_now_ns());
      text.put(std::span<const char, Date::kLineBytes>(line));
    }
    text.put(extra);
    if (!has_body) {
      // RFC 9110 15.3.6: of the statuses without a body, 205 is the only one whose response does not implicitly end with its
      // head.
      if (response_.status == 205) text.put("Content-Length: 0\r\n");
    } else if (length) {
      text.put("Content-Length: ");
      text.put(*length);
      text.put("\r\n");
    } else if (framing_.chunked) {
      text.put("Transfer-Encoding: chunked\r\n");
    }
    if (!keep_alive_) {
      text.put("Connection: close\r\n");
    } else if (buffers_->head.version_minor == 0) {
      text.put("Connection: keep-alive\r\n");
    }
    text.put("\r\n");
    return static_cast<std::size_t>(text.end() - begin);
  });
  response_.begun = response_.started = true;
}

Result<void> RequestLoop::send_interim_head(int status, std::string_view lines, const Context* ctx) {
  writer_.check();
  stop_early_sending(*buffers_);
  append_status_line(buffers_->out, status);
  buffers_->out.append(lines).append("\r\n");
  return send_all(ctx);
}

void RequestLoop::start(const std::optional<std::uint64_t>& length) {
  writer_.check();
  stop_early_sending(*buffers_);
  // Whether the connection stays open must be known before the head is written.
  const auto body_ends_it = [this] {
    return body_.continue_wanted || body_.error || body_.reader.remaining() > kSkippedBodyMax;
  };
  const bool being_read = body_.separate && !body_read_.load(std::memory_order_acquire);
  if (session_.draining() || being_read || body_ends_it()) keep_alive_ = false;
  append_head(length);
}

// Sends the collected output, `body` in place, and `end`.
Result<void> RequestLoop::send_large(std::string_view body, std::string_view end, const Context* ctx) {
  const SoleWriter::Use use(writer_);
  std::string& out = buffers_->out;
  std::array<struct iovec, 3> pieces{{{out.data(), out.size()},
                                      {const_cast<char*>(body.data()), body.size()},
                                      {const_cast<char*>(end.data()), end.size()}}};
  limit_writes(ctx);
  Result<void> result = ctx != nullptr ? conn().writev_all(*ctx, pieces) : conn().writev_all(pieces);
  out.clear();
  broken_ = !sent(result);
  return result;
}

void RequestLoop::append_chunk(std::string_view data) {
  std::string& out = buffers_->out;
  if (!framing_.chunked) {
    out += data;
    return;
  }
  append_chunk_size(out, data.size());
  out.append(data).append("\r\n");
}

void RequestLoop::end_chunks() {
  std::string& out = buffers_->out;
  out.append("0\r\n").append(buffers_->trailers).append("\r\n");
}

Result<void> RequestLoop::send(std::string_view data, const Context* ctx) {
  writer_.check();
  if (data.size() < kStreamedPiece) {
    append_chunk(data);
    return buffers_->out.size() < kStreamedPiece ? Result<void>() : send_all(ctx);
  }
  if (framing_.chunked) append_chunk_size(buffers_->out, data.size());
  return write_result(send_large(data, framing_.chunked ? "\r\n" : "", ctx).has_value(), ctx);
}

Result<void> RequestLoop::send_file(net::FileSlice& slice, const Context* ctx) {
  const SoleWriter::Use use(writer_);
  std::string& out = buffers_->out;
  if (framing_.chunked) append_chunk_size(out, slice.length);
  limit_writes(ctx);
  const Result<void> result =
      ctx != nullptr ? conn().send_file(*ctx, slice, out) : conn().send_file(slice, out);
  out.clear();
  broken_ = !sent(result);
  if (framing_.chunked && result) out += "\r\n";
  return result;
}

net::Spliced RequestLoop::splice_from(net::Conn& from, std::uint64_t most, const Context& ctx) {
  using net::detail::ConnParts;
  if (framing_.chunked || ConnParts::transport(conn()) != nullptr || ConnParts::transport(from) != nullptr)
    return {.possible = false};
  if (!flush(false, &ctx)) return {.write_error = Error(Errc::kClosed, "write")};
  const SoleWriter::Use use(writer_);
  net::Spliced spliced =
      net::splice_received(ConnParts::descriptor(conn()), ConnParts::descriptor(from), most, ctx);
  if (spliced.write_error) broken_ = !sent(std::unexpected(*spliced.write_error));
  return spliced;
}

Result<void> RequestLoop::send_all(const Context* ctx) { return write_result(flush(false, ctx), ctx); }

// A response that was held back goes into the output.
void RequestLoop::give_held_back() {
  const bool in_chunks = sends_trailers();
  // Not a copy, which would read in one word what was stored in two, and wait for that.
  static constexpr std::optional<std::uint64_t> kUnknown;
  start(in_chunks ? kUnknown : response_.declared_length);
  if (!in_chunks) {
    if (!head_only()) buffers_->out += buffers_->body;
  } else {
    if (!buffers_->body.empty()) append_chunk(buffers_->body);
    end_chunks();
  }
  buffers_->body.clear();
}

// The handler has returned: completes the response if the handler has not.
void RequestLoop::finish_response() {
  if (!response_.started) {
    if (!response_.finished) {
      const std::uint64_t held = head_only() ? response_.written : buffers_->body.size();
      // The body is shorter than promised: the client must not take the next response for the rest.
      if (!head_only() && response_.declared_length.value_or(held) != held) keep_alive_ = false;
      if (!response_.declared_length) response_.declared_length = held;
    }
    response_.begun = response_.finished = true;
    return give_held_back();
  }
  if (std::exchange(response_.finished, true) || head_only()) return;
  if (!wrote_all_it_declared()) {
    // The body gets no end, so that the client does not take the part for the whole.
    keep_alive_ = false;
    (void)flush();
    if (framing_.ends_with_connection) broken_ = true;
    return;
  }
  if (framing_.chunked) end_chunks();
}

}  // namespace tuza::http
