#include <tuza/http/h1/request_loop.h>

#include <tuza/http/h1/early_sending.h>
#include <tuza/http/h1/plain_http.h>
#include <tuza/http/serve/pooled_read.h>
#include <tuza/http/wire/framing.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/netpoll/tls.h>
#include <tuza/sched/detail/clock_source.h>
#include <tuza/sched/log.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/base/random.h>
#include <tuza/sched/rt/memory/idle_stacks.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace tuza::http {
namespace {

// A deadline `after` from now, by the coarse clock. That clock lags, which makes the deadline earlier by
// milliseconds.
net::TimePoint soon(std::chrono::milliseconds after) {
  return net::TimePoint(std::chrono::nanoseconds(rt::time_after(rt::clock_coarse_ns(), rt::whole_ns(after))));
}

// How long a refused client may take to read the reason.
constexpr std::chrono::milliseconds kLingerTime{2000};
constexpr std::chrono::milliseconds kLingerTimeAtShutdown{200};
// How long an idle connection is kept when the server shuts down.
constexpr std::chrono::milliseconds kFinalCheck{10};
// Above this size, output is sent before the handler of the next pipelined request runs.
constexpr std::size_t kOutMax = 64 << 10;

// `object = T{}` would clear all of it, build the new value beside it, and copy that in wider words than it was stored in, for
// which a processor waits: together a tenth of the time of a request.
template <class T>
void make_anew(T& object) {
  static_assert(std::is_nothrow_default_constructible_v<T>);
  std::destroy_at(&object);
  ::new (static_cast<void*>(&object)) T;  // no parentheses, which clear what the constructor sets anyway
}

// The request line of the request in progress, of which only a part may have arrived and nothing may have been parsed.
std::string_view request_line(Input& input) {
  std::string_view text(input.request(), input.request_bytes() + input.unread().size());
  text.remove_prefix(std::min(text.find_first_not_of("\r\n"), text.size()));
  return text.substr(0, text.find_first_of("\r\n"));
}

}  // namespace

RequestLoop::~RequestLoop() {
  end_context();
  if (buffers_ == nullptr) return;
  buffers_->input.consume(buffers_->input.unread().size());
  buffers_->end_request();
  ExchangeBuffers::give_back(buffers_);
}

std::string_view RequestLoop::remote() {
  if (remote_.empty()) remote_ = conn().remote_address().value_or("-");
  return remote_;
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

// RFC 9112 2.2: some clients end the body of a request with a line end that does not count. Empty lines in front of a request
// are none of it, so the connection stays idle. A line feed alone is one, too; a carriage return alone is none. False: a
// request has begun.
bool RequestLoop::drop_line_ends() {
  Input& input = buffers_->input;
  const std::string_view unread = input.unread();
  std::size_t size = 0;
  for (; size < unread.size(); ++size) {
    const bool cr = !after_cr_ && unread[size] == '\r';
    if (!cr && unread[size] != '\n') break;
    after_cr_ = cr;
  }
  if (size == 0) return unread.empty();
  input.consume(size);
  input.end_request();  // the request begins behind them
  return size == unread.size();
}

// Reads until the input contains a complete head. False: the connection is to be closed.
bool RequestLoop::read_head() {
  for (;;) {
    if (buffers_ != nullptr && !buffers_->input.empty() && (head_begun_ || !drop_empty_lines())) {
      if (std::exchange(after_cr_, false)) {
        refuse({400, "carriage return without a line feed", 0});
        return false;
      }
      Input& input = buffers_->input;
      if (!std::exchange(head_begun_, true)) buffers_->parser.begin(buffers_->head, limits_);
      const std::size_t unread = input.unread().size();
      const auto complete = buffers_->parser.feed_head(input.request(), unread);
      if (!complete) {
        refuse(refusal(complete.error()));
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
    conn().set_read_deadline(soon(options_.idle_timeout));
    if (!session_.begin_idle()) return final_check();
  } else if (!std::exchange(head_deadline_set_, true)) {
    conn().set_read_deadline(net::time_after_now(options_.header_timeout));
  }
  const Result<std::size_t> n = idle ? read_idle() : receive();
  if (idle) session_.end_idle();
  if (n && *n > 0) return true;
  if (idle) {
    // This timeout came from the server, which shuts down or needs room: the client has not been idle for too long.
    if (!n && n.error().timeout() && (session_.draining() || session_.makes_room())) return final_check();
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

// Reads until there is more than empty lines, and adds it to the input. They prolong neither idle_timeout nor a shutdown:
// every read stops at the deadline, which stays where it is.
// No handler is on the stack: the stack memory below may be released while the client is idle.
Result<std::size_t> RequestLoop::read_idle() {
  const rt::NothingBelow trim_while_parked;
  for (;;) {
    const Result<std::size_t> n = receive();
    if (!n || *n == 0 || !drop_empty_lines()) return n;
  }
}

// Reads more into the input, which is used up.
Result<std::size_t> RequestLoop::receive() {
  if (buffers_ != nullptr && !head_begun_) ExchangeBuffers::give_back(std::exchange(buffers_, nullptr));
  PooledRead read;
  const Result<std::size_t> n = net::detail::ConnParts::read(conn(), read);
  if (n && *n > 0) {
    if (buffers_ == nullptr) buffers_ = ExchangeBuffers::take();
    buffers_->input.append(read.bytes(*n));
  }
  return n;
}

// With TLS, the first read performs the handshake, which has its own timeout.
void RequestLoop::count_failed_read(const Error& error) {
  if (net::is_tls_error(error)) {
    ServerCounters::add(counters_.tls_failures);
    if (net::is_plain_http(error)) refuse_plain_http(error.subject() == "HEAD");
  } else if (error.timeout()) {
    const bool handshake = error.op() == "tls handshake";
    ServerCounters::add(handshake     ? counters_.handshake_timeouts
                        : head_begun_ ? counters_.header_timeouts
                                      : counters_.idle_timeouts);
  }
}

void RequestLoop::refuse_plain_http(bool to_head) {
  counters_.add_refused(kPlainHttp.status);
  report_refused(kPlainHttp, {});
  answer_plain_http(conn(), to_head, linger_time());
}

void RequestLoop::report_refused(const BadRequest& bad, std::string_view line) {
  if (!options_.on_refused) return;
  options_.on_refused({.remote = remote(), .request_line = line, .status = bad.status, .reason = bad.text});
}

std::chrono::milliseconds RequestLoop::linger_time() const {
  return session_.draining() ? kLingerTimeAtShutdown : kLingerTime;
}

// The server is ending, and the client does not know yet: a request may have arrived already, or be on its
// way.
bool RequestLoop::final_check() {
  // The second read asks the kernel: bytes may have arrived without having been reported yet.
  for (int look = 0; look < 2; ++look) {
    conn().set_read_deadline(net::time_after_now(kFinalCheck));
    const Result<std::size_t> n = receive();
    if (n && *n > 0) {
      if (!drop_empty_lines()) return true;
      continue;
    }
    if (n) return false;
    if (!n.error().timeout()) {
      count_failed_read(n.error());
      return false;
    }
  }
  return false;
}

void RequestLoop::begin_life() {
  const std::int64_t most = rt::whole_ns(options_.connection_age_max).count();
  // The address of this object on its goroutine's stack is as good as any seed.
  const std::uint32_t part =
      rt::Random(reinterpret_cast<std::uintptr_t>(this) ^ static_cast<std::uint64_t>(rt::now_ns()))
          .below(1000);
  ends_ns_ = rt::time_after(rt::clock_coarse_ns(), std::chrono::nanoseconds(most - most / 10'000 * part));
}

// Counts the request that begins.
bool RequestLoop::is_last_request() {
  const std::size_t most = options_.requests_per_connection_max;
  return (most != 0 && ++requests_ >= most) || (ends_ns_ != 0 && rt::clock_coarse_ns() >= ends_ns_);
}

// Interprets a complete head.
std::optional<BadRequest> RequestLoop::begin_request() {
  RequestHead& head = buffers_->head;
  head_begun_ = head_deadline_set_ = false;
  buffers_->input.pin();
  buffers_->head_base = buffers_->input.request();
  if (const auto framed = frame_request(buffers_->input.request(), head, options_.connect); !framed)
    return refusal(framed.error());
  // RFC 9110 7.4: a request for an https URI is served only over a secured connection.
  if (head.https_target && !conn().tls_info())
    return BadRequest{421, "https target on a plain connection", 0};
  if (head.chunked) {
    body_.reader.begin_chunks(buffers_->chunks, options_.chunk_overhead_bytes_max);
  } else {
    body_.reader.begin_length(head.content_length);
  }
  // A client that has already sent a part of the body does not wait for "100 Continue".
  body_.continue_wanted = head.expects_continue && !body_.reader.complete() && buffers_->input.empty();
  keep_alive_ = head.keep_alive && !is_last_request();
  if (options_.request_timeout.count() > 0) request_began_ns_ = rt::clock_now_ns();
  logged_ = false;
  body_bytes_max_ = options_.body_bytes_max;
  too_large_ = head.content_length > body_bytes_max_;
  // Not fail_body(), which has lost the connection: accept_body() may follow.
  if (too_large_) body_.error = BadRequest{413, "request body too large", head.bytes};
  return std::nullopt;
}

// Publishes the request for reports, which may interrupt the handler anywhere. Its head does not change until
// the handler has returned.
class RequestLoop::InHandler {
 public:
  explicit InHandler(RequestLoop& loop) : loop_(loop) {
    std::atomic_signal_fence(std::memory_order_release);
    loop_.in_handler_ = loop_.buffers_;
  }
  ~InHandler() {
    loop_.in_handler_ = nullptr;
    std::atomic_signal_fence(std::memory_order_release);
  }
  InHandler(const InHandler&) = delete;
  InHandler& operator=(const InHandler&) = delete;

 private:
  RequestLoop& loop_;
};

std::size_t RequestLoop::describe(const void* loop, rt::ReadMemory read, std::span<char> into) {
  const ExchangeBuffers* buffers = nullptr;
  static_assert(sizeof buffers == sizeof in_handler_);
  if (!read(&buffers, &static_cast<const RequestLoop*>(loop)->in_handler_, sizeof buffers)) return 0;
  Method method{};
  HeadSlice target;
  const char* base = nullptr;
  if (buffers == nullptr || !read(&method, &buffers->head.method, sizeof method) ||
      static_cast<int>(method) >= kMethodCount || !read(&target, &buffers->head.target, sizeof target) ||
      !read(&base, &buffers->head_base, sizeof base)) {
    return 0;
  }
  std::array<char, sizeof(rt::ActivityText::bytes)> text;
  const std::size_t length = std::min<std::size_t>(target.size, text.size());
  if (!read(text.data(), base + target.begin, length)) return 0;
  std::size_t size = rt::append(into, 0, "serving ");
  size = rt::append(into, size, name(method));
  size = rt::append(into, size, " ");
  return rt::append(into, size, {text.data(), length});
}

void RequestLoop::run_handler() {
  const InHandler published(*this);
  Outcome outcome{};
  try {
    const EarlySending early(conn(), *buffers_);
    outcome = run(handler_);
  } catch (...) {
    // goexit(). Earlier requests have been answered, and this one perhaps, too, but the answers may not be sent yet.
    if (response_.finished && !response_.started) give_held_back();
    (void)flush();
    cut_off();
    throw;
  }
  end_context();
  body_.separate = false;
  if (outcome == Outcome::kReturned) return;
  keep_alive_ = false;
  if (outcome == Outcome::kThrown) return;
  // Data already sent cannot be withdrawn, only cut off.
  if (!response_.started) give_held_back();
  (void)flush();
  broken_ = true;
}

Context RequestLoop::make_context() {
  const net::TimePoint ends = request_ends();
  watch_.emplace(conn(), ends != net::kNoDeadline ? with_deadline(Context::background(), ends)
                                                  : with_cancel(Context::background()));
  return watch_->context();
}

// The stream must begin right behind the request.
Result<HijackedStream> RequestLoop::hand_over() {
  if (!body_.reader.complete())
    return std::unexpected(Error(Errc::kBadMessage, "hijack", "the request has an unread body"));
  if (!flush()) return std::unexpected(Error(Errc::kClosed, "hijack"));
  keep_alive_ = false;
  conn().set_read_deadline(net::kNoDeadline);
  limit_writes(&kServerLimits);
  return HijackedStream(conn(), buffers_->input);
}

void RequestLoop::end_context() {
  contexts_.until_shutdown.reset();
  if (!watch_) return;
  watch_.reset();
  contexts_.context.reset();
}

// Completes the response, and decides whether another request can follow.
bool RequestLoop::finish_request() {
  if (broken_) return false;
  if (body_.error && !response_.begun) {
    refuse(*body_.error);
    return false;
  }
  // Decided before the head is written: a client must learn from it that its next request would be lost. Only reading
  // tells whether the rest of a chunked body is small enough.
  const bool may_go_on = keep_alive_ && !response_.close && !session_.draining();
  const bool wait_for_rest = may_go_on && body_.reader.chunked() && !body_.reader.complete() &&
                             !body_.continue_wanted && !response_.started;
  if (wait_for_rest && !body_.error) (void)skip_body();
  const bool skippable = !body_.continue_wanted && body_.reader.remaining() <= kSkippedBodyMax &&
                         !body_.error && (!wait_for_rest || body_.reader.complete());
  if (!skippable || session_.draining() || response_.close) keep_alive_ = false;
  finish_response();
  if (broken_) return false;
  const bool skipped = body_.reader.complete() || (keep_alive_ && skip_body());
  if (!skipped || !keep_alive_) {
    if (flush(true) && something_may_be_lost()) linger();
    return false;
  }
  buffers_->end_request();
  release_body();
  // Reset here, not when the next head is complete: that head may turn out to be malformed, and is answered
  // as well.
  make_anew(response_);
  make_anew(framing_);
  make_anew(body_);
  return buffers_->out.size() < kOutMax || flush();
}

// Reads the rest of the request's body that the handler has not read. False: the rest is too large or
// malformed.
bool RequestLoop::skip_body() {
  // The client may wait for the response before it sends the rest.
  if (buffers_->input.empty() && !flush()) return false;
  body_.deadline = net::time_after_now(options_.skip_timeout);
  std::array<std::byte, Input::kReadBytes> scrap;
  for (std::uint64_t skipped = 0; skipped <= kSkippedBodyMax;) {
    const Result<std::size_t> n = read_body(scrap, nullptr);
    if (!n) return false;
    if (*n == 0) return true;
    skipped += *n;
  }
  return false;
}

// The connection ends in the middle of a response. If a complete response would end in the same way, a reset
// prevents the client from taking this response for complete.
void RequestLoop::cut_off() {
  if (framing_.ends_with_connection) (void)conn().set_linger_zero();
}

// The only place that answers bad input: with the status, a line of text, and the end of the connection.
void RequestLoop::refuse(const BadRequest& bad) {
  keep_alive_ = false;
  if (buffers_ == nullptr) return;
  release_body();  // others may need the room while this client takes its answer
  std::string().swap(buffers_->pulled);
  if (response_.started) {
    (void)flush();
    return;
  }
  counters_.add_refused(bad.status);
  // An error in the body is the end of a request that a handler had, or at least the middleware around it.
  if (!body_.error || (too_large_ && !logged_)) report_refused(bad, request_line(buffers_->input));
  drop_prepared_body();
  std::string text(bad.text);
  text += '\n';
  response_.status = bad.status;
  response_.close = true;
  set_header("Content-Type", "text/plain; charset=utf-8");
  if (bad.status == 503) set_header("Retry-After", "1");
  append_head(text.size());
  // RFC 9110 9.3.2: no answer to HEAD has a body, not even to a malformed one. An error in the body: the head is parsed,
  // and its bytes may have moved.
  const bool to_head = body_.error ? buffers_->head.method == Method::kHead
                                   : request_line(buffers_->input).starts_with("HEAD ");
  if (!to_head) buffers_->out += text;
  if (flush(true)) linger();  // the client has perhaps only begun to send
}

// If the client still sends, closing makes the kernel answer with a reset, which destroys what the client has not
// received yet. So this function ends our side of the stream, and reads on for a while.
void RequestLoop::linger() {
  if (!conn().close_write()) return;
  conn().set_read_deadline(net::time_after_now(linger_time()));
  for (;;) {
    PooledRead unread;
    const Result<std::size_t> n = net::detail::ConnParts::read(conn(), unread);
    if (!n || *n == 0) return;
  }
}

// False: the client has acknowledged everything, and has sent nothing that is still unread.
bool RequestLoop::something_may_be_lost() {
  if (!body_.reader.complete() || !buffers_->input.empty()) return true;
  return !conn().all_delivered();
}

bool RequestLoop::flush(bool last, const Context* ctx) {
  if (buffers_ == nullptr) return true;
  stop_early_sending(*buffers_);
  if (buffers_->out.empty() && !buffers_->sent_early) return true;
  const SoleWriter::Use use(writer_);
  if (!broken_) {
    limit_writes(ctx);
    const std::string& out = buffers_->out;
    broken_ = !sent(last             ? conn().write_last(out)
                    : ctx == nullptr ? conn().write_all(out)
                                     : conn().write_all(*ctx, out));
    buffers_->out.clear();
    buffers_->sent_early = false;
  }
  return !broken_;
}

bool RequestLoop::sent(const Result<void>& result) {
  if (!result && result.error().timeout()) ServerCounters::add(counters_.write_timeouts);
  return result.has_value();
}

}  // namespace tuza::http
