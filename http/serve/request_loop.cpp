#include <tuza/http/serve/request_loop.h>

#include <tuza/http/wire/framing.h>
#include <tuza/netpoll/tls.h>
#include <tuza/sched/detail/coarse_clock.h>
#include <tuza/sched/log.h>
#include <tuza/sched/rt/memory/idle_stacks.h>

#include <chrono>
#include <exception>
#include <string>
#include <utility>

namespace tuza::http {
namespace {

using Clock = std::chrono::steady_clock;

// A deadline `after` from now, by the coarse clock. That clock lags, which makes the deadline earlier by
// milliseconds.
net::TimePoint soon(std::chrono::milliseconds after) {
  return net::TimePoint(std::chrono::nanoseconds(rt::time_after(coarse_now_ns(), rt::whole_ns(after))));
}

// Maximum size of an unwanted body that is read in order to keep the connection.
constexpr std::uint64_t kSkippedBodyMax = 256 << 10;
// How long a refused client may take to read the reason.
constexpr std::chrono::milliseconds kLingerTime{2000};
// How long an idle connection is kept when the server shuts down.
constexpr std::chrono::milliseconds kFinalCheck{10};
// Above this size, output is sent before the handler of the next pipelined request runs.
constexpr std::size_t kOutMax = 64 << 10;

// Text that a client may influence must not look like other log lines, nor control a terminal.
std::string printable(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      out += c;
    } else {
      out.append("\\x").append(1, kDigits[byte >> 4]).append(1, kDigits[byte & 15]);
    }
  }
  return out;
}

void log_exception(const Request& request, std::string_view what) {
  static LogLimiter limiter(10);
  limiter.log(LogLevel::kError, "tuza: the handler of " + std::string(request.method_name()) + " " +
                                    std::string(request.path().substr(0, 200)) +
                                    " has thrown: " + printable(what.substr(0, 1000)));
}

}  // namespace

RequestLoop::~RequestLoop() {
  if (buffers_ == nullptr) return;
  buffers_->input.consume(buffers_->input.unread().size());
  buffers_->end_request();
  ExchangeBuffers::give_back(buffers_);
}

std::string_view RequestLoop::remote() {
  if (remote_.empty()) remote_ = conn().remote_address().value_or("-");
  return remote_;
}

std::span<std::byte> RequestLoop::take() {
  if (buffers_ == nullptr) buffers_ = ExchangeBuffers::take();
  return buffers_->input.space();
}

void RequestLoop::give_back() {
  if (!buffers_->input.empty() || head_begun_) return;
  ExchangeBuffers::give_back(std::exchange(buffers_, nullptr));
}

// Memory may run out anywhere, even for the answer that reports the failure. This connection then ends; the
// other connections continue, and have more memory.
void RequestLoop::serve() try {
  bool goes_on = true;
  while (goes_on && read_head()) {
    if (std::optional<BadRequest> bad = begin_request()) return refuse(*bad);
    run_handler();
    goes_on = finish_request();
  }
  if (broken_) cut_off();
} catch (const std::bad_alloc&) {
  cut_off();
  static LogLimiter limiter;
  limiter.log(LogLevel::kError, "tuza: no memory for a request; its connection is closed");
}

// Reads until the input contains a complete head. False: the connection is to be closed.
bool RequestLoop::read_head() {
  for (;;) {
    if (buffers_ != nullptr && !buffers_->input.empty()) {
      Input& input = buffers_->input;
      if (!std::exchange(head_begun_, true)) buffers_->parser.begin(buffers_->head, options_);
      const std::size_t unread = input.unread().size();
      const auto complete = buffers_->parser.feed_head(input.request(), unread);
      if (!complete) {
        refuse(complete.error());
        return false;
      }
      input.consume(*complete ? buffers_->head.bytes - input.request_bytes() : unread);
      if (*complete) return true;
    }
    if (!wait_for_bytes()) return false;
  }
}

// The input is used up. Sends the pending output, and waits for more. Between requests, the connection waits
// without a working set, and shutdown may interrupt the wait. Within a head, the wait lasts at most for the
// rest of header_timeout.
bool RequestLoop::wait_for_bytes() {
  if (!flush()) return false;
  const bool idle = !head_begun_;
  if (idle) {
    if (buffers_ != nullptr) ExchangeBuffers::give_back(std::exchange(buffers_, nullptr));
    conn().set_read_deadline(soon(options_.idle_timeout));
    if (!session_.begin_idle()) return final_check();
  } else if (!std::exchange(head_deadline_set_, true)) {
    conn().set_read_deadline(net::time_after_now(options_.header_timeout));
  }
  const Result<std::size_t> n = idle ? read_idle() : conn().read(static_cast<net::LazyBuffer&>(*this));
  if (idle) session_.end_idle();
  if (n && *n > 0) {
    buffers_->input.filled(*n);
    return true;
  }
  if (idle) {
    // This timeout came from the server's shutdown: the client has not been idle for too long.
    if (!n && n.error().timeout() && session_.draining()) return final_check();
    if (!n) count_failed_read(n.error());
    return false;
  }
  if (n) {
    refuse({400, "request head truncated", 0});
    return false;
  }
  count_failed_read(n.error());
  if (n.error().timeout()) refuse({408, "the head did not arrive in time", 0});
  return false;
}

// No handler is on the stack: the stack memory below may be released while the client is idle.
Result<std::size_t> RequestLoop::read_idle() {
  const rt::NothingBelow trim_while_parked;
  return conn().read(static_cast<net::LazyBuffer&>(*this));
}

// With TLS, the first read performs the handshake, which has its own timeout.
void RequestLoop::count_failed_read(const Error& error) {
  if (net::is_tls_error(error)) {
    ServerCounters::add(counters_.tls_failures);
  } else if (error.timeout()) {
    const bool handshake = error.op() == "tls handshake";
    ServerCounters::add(handshake     ? counters_.handshake_timeouts
                        : head_begun_ ? counters_.header_timeouts
                                      : counters_.idle_timeouts);
  }
}

// The server is ending, and the client does not know yet: a request may have arrived already, or be on its
// way.
bool RequestLoop::final_check() {
  // The second read asks the kernel: bytes may have arrived without having been reported yet.
  for (int look = 0; look < 2; ++look) {
    conn().set_read_deadline(Clock::now() + kFinalCheck);
    const Result<std::size_t> n = conn().read(static_cast<net::LazyBuffer&>(*this));
    if (n && *n > 0) {
      buffers_->input.filled(*n);
      return true;
    }
    if (n) return false;
    if (!n.error().timeout()) {
      count_failed_read(n.error());
      return false;
    }
  }
  return false;
}

// Interprets a complete head.
std::optional<BadRequest> RequestLoop::begin_request() {
  Head& head = buffers_->head;
  head_begun_ = head_deadline_set_ = false;
  buffers_->input.pin();
  buffers_->head_base = buffers_->input.request();
  if (const auto framed = frame(buffers_->input.request(), head); !framed) return framed.error();
  body_.chunked = head.chunked;
  if (head.chunked) buffers_->parser.expect_chunks();
  body_.remaining = head.content_length;
  body_.complete = !head.chunked && head.content_length == 0;
  // A client that has already sent a part of the body does not wait for "100 Continue".
  body_.continue_wanted = head.expects_continue && !body_.complete && buffers_->input.empty();
  keep_alive_ = head.keep_alive;
  if (head.content_length > options_.body_bytes_max) {
    return BadRequest{413, "request body too large", head.bytes};
  }
  return std::nullopt;
}

void RequestLoop::run_handler() {
  Request request(*this);
  ResponseWriter writer(*this);
  try {
    handler_(request, writer);
    return;
  } catch (const std::exception& e) {
    log_exception(request, e.what());
  } catch (...) {
    if (std::current_exception() == nullptr) {
      // Not a C++ exception: goexit(). Earlier requests have been answered, but the answers may not be sent
      // yet.
      (void)flush();
      cut_off();
      throw;
    }
    log_exception(request, "an exception not derived from std::exception");
  }
  ServerCounters::add(counters_.handlers_thrown);
  // A prepared response is dropped. Data already sent cannot be withdrawn, only cut off.
  keep_alive_ = false;
  if (!response_.head_sent) {
    writer.error(500);
    return;
  }
  (void)flush();
  broken_ = true;
}

// Completes the response, and decides whether another request can follow.
bool RequestLoop::finish_request() {
  if (broken_) return false;
  if (body_.error && !response_.head_sent) {
    refuse(*body_.error);
    return false;
  }
  const bool skippable = !body_.continue_wanted && body_.remaining <= kSkippedBodyMax && !body_.error;
  if (!skippable || session_.draining() || response_.close) keep_alive_ = false;
  finish_response();
  if (broken_) return false;
  const bool skipped = body_.complete || (keep_alive_ && skip_body());
  if (!skipped || !keep_alive_) {
    if (!flush(true)) return false;
    if (!body_.complete || !buffers_->input.empty()) linger();
    return false;
  }
  buffers_->end_request();
  // Reset here, not when the next head is complete: that head may turn out to be malformed, and is answered
  // as well.
  response_ = Response{};
  body_ = Body{};
  return buffers_->out.size() < kOutMax || flush();
}

// Reads the rest of the request's body that the handler has not read. False: the rest is too large or
// malformed.
bool RequestLoop::skip_body() {
  // The client may wait for the response before it sends the rest.
  if (buffers_->input.empty() && !flush()) return false;
  body_.deadline = net::time_after_now(options_.skip_timeout);
  std::array<std::byte, Input::kInlineBytes> scrap;
  for (std::uint64_t skipped = 0; skipped <= kSkippedBodyMax;) {
    const Result<std::size_t> n = read_body(scrap);
    if (!n) return false;
    if (*n == 0) return true;
    skipped += *n;
  }
  return false;
}

// The connection ends in the middle of a response. If a complete response would end in the same way, a reset
// prevents the client from taking this response for complete.
void RequestLoop::cut_off() {
  if (response_.ends_with_connection) (void)conn().set_linger_zero();
}

// The only place that answers bad input: with the status, a line of text, and the end of the connection.
void RequestLoop::refuse(const BadRequest& bad) {
  keep_alive_ = false;
  if (buffers_ == nullptr) return;
  if (response_.head_sent) {
    (void)flush();
    return;
  }
  counters_.add_refused(bad.status);
  drop_prepared_response();
  std::string text(bad.text);
  text += '\n';
  response_.status = bad.status;
  // The method may be unknown; a client that sent a malformed HEAD request must accept a body.
  response_.close = true;
  buffers_->extra += "Content-Type: text/plain; charset=utf-8\r\n";
  response_.has_content_type = true;
  append_head(text.size());
  buffers_->out += text;
  if (flush(true)) linger();
}

// Closing while the client still sends makes the kernel answer with a reset, which may overtake the response
// and destroy it. So this function ends our side of the stream, and continues to read for a while.
void RequestLoop::linger() {
  if (!conn().close_write()) return;
  conn().set_read_deadline(Clock::now() + kLingerTime);
  Input& input = buffers_->input;
  input.consume(input.unread().size());
  input.end_request();
  for (;;) {
    const Result<std::size_t> n = conn().read(input.space());
    if (!n || *n == 0) return;
  }
}

bool RequestLoop::flush(bool last) {
  if (buffers_ == nullptr || buffers_->out.empty()) return true;
  if (!broken_) {
    broken_ = !sent(last ? conn().write_last(buffers_->out) : conn().write_all(buffers_->out));
    buffers_->out.clear();
  }
  return !broken_;
}

bool RequestLoop::sent(const Result<void>& result) {
  if (!result && result.error().timeout()) ServerCounters::add(counters_.write_timeouts);
  return result.has_value();
}

}  // namespace tuza::http
