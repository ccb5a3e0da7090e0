// Writes a response: head, body with a length or in chunks, end.
#include <tuza/http/serve/request_loop.h>
#include <tuza/http/status.h>
#include <tuza/http/wire/chars.h>
#include <tuza/sched/detail/coarse_clock.h>

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <stdexcept>
#include <string>

namespace tuza::http {
namespace {

// A body up to this size is held back until the handler has returned, so that its length can be sent.
constexpr std::size_t kKeptBackMax = 16 << 10;
// Smaller pieces of a stream are collected up to this size.
constexpr std::size_t kStreamedPiece = 16 << 10;
// A body up to this size is copied behind its head; a larger body is sent in place, without a copy.
constexpr std::size_t kCopiedMax = 16 << 10;

void append_number(std::string& out, std::uint64_t value, int base = 10) {
  std::array<char, 20> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value, base);
  (void)error;
  out.append(digits.data(), end);
}

void append_status_line(std::string& out, int status) {
  if (status == 200) [[likely]] {
    out += "HTTP/1.1 200 OK\r\n";
    return;
  }
  out += "HTTP/1.1 ";
  append_number(out, static_cast<std::uint64_t>(status));
  out += ' ';
  out += reason_phrase(status);
  out += "\r\n";
}

void append_chunk_size(std::string& out, std::size_t size) {
  append_number(out, size, 16);
  out += "\r\n";
}

// A line end in a value would let the source of that value write the rest of the response.
void require_one_line(std::string_view name, std::string_view value) {
  if (has_control_char(value)) [[unlikely]] {
    throw std::invalid_argument("control character in the value of " + std::string(name));
  }
}

// The handler has called functions in the wrong order. The error ends like any exception of a handler: this
// request fails, no other.
void require(bool in_order, const char* otherwise) {
  if (!in_order) throw std::logic_error(otherwise);
}

}  // namespace

bool RequestLoop::body_allowed() const {
  return response_.status >= 200 && response_.status != 204 && response_.status != 205 &&
         response_.status != 304;
}

int RequestLoop::status_code() const {
  return body_.error && !response_.head_sent ? body_.error->status : response_.status;
}

std::uint64_t RequestLoop::bytes_written() const {
  return buffers_->head.method == Method::kHead || !body_allowed() ? 0 : response_.written;
}

void RequestLoop::set_status(int code) {
  require(!response_.head_sent, "status() after the response has begun");
  if (code < 200 || code > 599)
    throw std::invalid_argument("HTTP status out of range: " + std::to_string(code));
  response_.status = code;
}

void RequestLoop::add_header(std::string_view name, std::string_view value) {
  require(!response_.head_sent, "header() after the response has begun");
  const bool token =
      !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return is(c, kTokenChar); });
  if (!token) throw std::invalid_argument("malformed header field name");
  require_one_line(name, value);
  if (equals_ignoring_case(name, "Transfer-Encoding") || equals_ignoring_case(name, "Connection")) {
    throw std::invalid_argument(std::string(name) + " is set by the server");
  }
  if (equals_ignoring_case(name, "Content-Length")) {
    std::uint64_t length = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
    if (error != std::errc{} || end != value.data() + value.size()) {
      throw std::invalid_argument("malformed Content-Length");
    }
    response_.declared_length = length;
    return;
  }
  response_.has_content_type = response_.has_content_type || equals_ignoring_case(name, "Content-Type");
  response_.has_date = response_.has_date || equals_ignoring_case(name, "Date");
  response_.has_server = response_.has_server || equals_ignoring_case(name, "Server");
  std::string& extra = buffers_->extra;
  extra.append(name).append(": ").append(value).append("\r\n");
}

void RequestLoop::drop_prepared_response() {
  const bool close = response_.close;
  response_ = Response{};
  response_.close = close;
  buffers_->extra.clear();
  buffers_->body.clear();
}

void RequestLoop::close_after_response() { response_.close = true; }

// Appends the head. The body has a length, or is chunked, or is ended by the end of the connection.
void RequestLoop::append_head(std::optional<std::uint64_t> length) {
  std::string& out = buffers_->out;
  append_status_line(out, response_.status);
  if (!response_.has_server && !options_.server_name.empty()) {
    out.append("Server: ").append(options_.server_name).append("\r\n");
  }
  if (!response_.has_date) out += buffers_->date.line(coarse_now_ns());
  out += buffers_->extra;
  if (!body_allowed()) {
    // RFC 9110 15.3.6: of the statuses without a body, 205 is the only one whose response does not implicitly
    // end with its head.
    if (response_.status == 205) out += "Content-Length: 0\r\n";
  } else if (length) {
    out += "Content-Length: ";
    append_number(out, *length);
    out += "\r\n";
  } else if (buffers_->head.version_minor >= 1) {
    response_.chunked = true;
    out += "Transfer-Encoding: chunked\r\n";
  } else {
    response_.close = response_.ends_with_connection = true;
  }
  if (response_.close) keep_alive_ = false;
  if (!keep_alive_) {
    out += "Connection: close\r\n";
  } else if (buffers_->head.version_minor == 0) {
    out += "Connection: keep-alive\r\n";
  }
  out += "\r\n";
  response_.head_sent = true;
}

void RequestLoop::send_whole(std::string_view content_type, std::string_view body) {
  require(!response_.head_sent && buffers_->body.empty(), "send() after the response has begun");
  if (!response_.has_content_type && body_allowed()) {
    require_one_line("Content-Type", content_type);
    buffers_->extra.append("Content-Type: ").append(content_type).append("\r\n");
    response_.has_content_type = true;
  }
  // Whether the connection stays open must be known before the head is written.
  if (session_.draining() || body_.continue_wanted || body_.error) keep_alive_ = false;
  append_head(body.size());
  response_.declared_length = response_.written = body.size();
  response_.finished = true;
  if (buffers_->head.method == Method::kHead || !body_allowed()) return;
  if (body.size() <= kCopiedMax) {
    buffers_->out += body;
  } else {
    (void)send_large(body);
  }
}

// Sends the collected output, `body` in place, and `end`.
Result<void> RequestLoop::send_large(std::string_view body, std::string_view end) {
  std::string& out = buffers_->out;
  std::array<struct iovec, 3> pieces{{{out.data(), out.size()},
                                      {const_cast<char*>(body.data()), body.size()},
                                      {const_cast<char*>(end.data()), end.size()}}};
  Result<void> result = conn().writev_all(pieces);
  out.clear();
  broken_ = !sent(result);
  return result;
}

void RequestLoop::append_chunk(std::string_view data) {
  std::string& out = buffers_->out;
  if (!response_.chunked) {
    out += data;
    return;
  }
  append_chunk_size(out, data.size());
  out.append(data).append("\r\n");
}

Result<void> RequestLoop::write_body(std::string_view data) {
  require(!response_.finished, "write() after the response was complete");
  if (broken_) return std::unexpected(Error(Errc::kClosed, "write"));
  response_.written += data.size();
  require(!response_.declared_length || response_.written <= *response_.declared_length,
          "write() exceeds Content-Length");
  if (buffers_->head.method == Method::kHead || !body_allowed() || data.empty()) return {};
  if (!response_.head_sent) {
    if (buffers_->body.size() + data.size() <= kKeptBackMax) {
      buffers_->body += data;
      return {};
    }
    begin_stream();
  }
  bool written = false;
  if (data.size() >= kStreamedPiece) {
    if (response_.chunked) append_chunk_size(buffers_->out, data.size());
    written = send_large(data, response_.chunked ? "\r\n" : "").has_value();
  } else {
    append_chunk(data);
    written = buffers_->out.size() < kStreamedPiece || flush();
  }
  if (written) return {};
  return std::unexpected(Error(Errc::kClosed, "write"));
}

// Appends the head, followed by the body data held back so far.
void RequestLoop::begin_stream() {
  if (session_.draining() || body_.continue_wanted || body_.error) keep_alive_ = false;
  append_head(response_.declared_length);
  if (!buffers_->body.empty()) append_chunk(buffers_->body);
  buffers_->body.clear();
}

Result<void> RequestLoop::flush_response() {
  if (!response_.head_sent) begin_stream();
  if (flush()) return {};
  return std::unexpected(Error(Errc::kClosed, "write"));
}

// The handler has returned: completes the response if the handler has not.
void RequestLoop::finish_response() {
  if (response_.finished) return;
  response_.finished = true;
  const bool head_only = buffers_->head.method == Method::kHead || !body_allowed();
  if (!response_.head_sent) {
    std::string& body = buffers_->body;
    const std::uint64_t length = head_only && response_.declared_length ? *response_.declared_length
                                 : head_only                            ? response_.written
                                                                        : body.size();
    if (!head_only && response_.declared_length && *response_.declared_length != length) keep_alive_ = false;
    append_head(response_.declared_length.value_or(length));
    if (!head_only) buffers_->out += body;
    return;
  }
  if (head_only) return;
  if (response_.chunked) buffers_->out += "0\r\n\r\n";
  // The body is shorter than promised: the client must not take the next response for the rest.
  if (response_.declared_length && response_.written != *response_.declared_length) {
    keep_alive_ = false;
    (void)flush();
  }
}

}  // namespace tuza::http
