// Reads a request's body, of known length or chunked, within its size and time limits.
#include <tuza/http/h1/early_sending.h>
#include <tuza/http/h1/request_loop.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/netpoll/tls.h>
#include <tuza/sched/detail/clock_source.h>

#include <algorithm>
#include <chrono>

namespace tuza::http {
namespace {

constexpr BadRequest kTooLarge{413, "request body too large", 0};
constexpr BadRequest kTooSlow{408, "the body did not arrive in time", 0};
constexpr std::uint64_t kSplicedMax = 1 << 20;

constexpr BadRequest kCutOff{400, "request body truncated", 0};

}  // namespace

net::TimePoint RequestLoop::patience() const {
  if (in_handler_ == nullptr) return net::kNoDeadline;
  if (!contexts_.context) return request_ends();
  return contexts_.context->deadline().value_or(net::kNoDeadline);
}

net::TimePoint RequestLoop::request_ends() const {
  if (options_.request_timeout.count() <= 0) return net::kNoDeadline;
  return net::TimePoint(
      std::chrono::nanoseconds(rt::time_after(request_began_ns_, rt::whole_ns(options_.request_timeout))));
}

Result<std::size_t> RequestLoop::fail_body(BadRequest bad) {
  if (!body_.separate) keep_alive_ = false;  // otherwise the head says so, if the body has not ended before
  if (bad.status == 408 && !body_.error) ServerCounters::add(counters_.body_timeouts);
  body_.error = bad;
  const Errc code = bad.status == 408 ? Errc::kTimeout : Errc::kBadMessage;
  return std::unexpected(Error(code, "read body", std::string(bad.text)));
}

Result<std::size_t> RequestLoop::fail_body(const Error& error) {
  if (net::is_tls_error(error)) ServerCounters::add(counters_.tls_failures);
  return fail_body(error.timeout() ? kTooSlow : kCutOff);
}

bool RequestLoop::separate_directions() {
  if (body_.error) return false;
  if (!(body_.continue_wanted ? send_before_body() : flush())) return false;
  body_read_.store(body_.reader.complete(), std::memory_order_relaxed);
  return body_.separate = true;
}

// The client may wait for something before it sends the body. False: the connection is broken.
bool RequestLoop::send_before_body() {
  // An answer that was held back. (Not once the handler has returned: see finish_request().)
  if (in_handler_ != nullptr && response_.finished && !response_.started) give_held_back();
  // In the middle of the response, or after it, the client would take this line for a part of the response or
  // for another response.
  if (std::exchange(body_.continue_wanted, false) && !response_.started) {
    stop_early_sending(*buffers_);
    buffers_->out += "HTTP/1.1 100 Continue\r\n\r\n";
  }
  return flush();
}

// A wait for the body, which must keep up with the minimum rate, after a grace period that covers slow starts. All waits count;
// what the handler does between them does not: the client is not to blame for an upstream that takes the body slowly.
class RequestLoop::BodyWait {
 public:
  BodyWait(RequestLoop& loop, const Context* ctx) : body_(loop.body_) {
    const ServerOptions& options = loop.options_;
    const std::chrono::duration<double> at_rate(
        static_cast<double>(body_.received) /
        static_cast<double>(std::max<std::size_t>(options.body_rate_min_bytes_per_second, 1)));
    const std::int64_t by_ns =
        rt::time_after(rt::time_after(begun_ns_ - body_.waited_ns, rt::whole_ns(options.body_timeout)),
                       rt::whole_ns(at_rate));
    const net::TimePoint until = ctx == nullptr ? loop.patience() : net::kNoDeadline;
    loop.conn().set_read_deadline(
        std::min({net::TimePoint(std::chrono::nanoseconds(by_ns)), body_.deadline, until}));
  }
  ~BodyWait() { body_.waited_ns += rt::clock_now_ns() - begun_ns_; }
  BodyWait(const BodyWait&) = delete;
  BodyWait& operator=(const BodyWait&) = delete;

 private:
  Body& body_;
  const std::int64_t begun_ns_ = rt::clock_now_ns();
};

// A read that ended with the caller's context takes nothing from the body: it may go on.
Result<std::size_t> RequestLoop::read_for_body(std::span<std::byte> into, const Context* ctx) {
  const SoleReader::Use use(reader_);
  if (!body_.separate && !send_before_body()) return fail_body(kCutOff);
  const auto read = [&] {
    const BodyWait wait(*this, ctx);
    return ctx != nullptr ? conn().read(*ctx, into) : conn().read(into);
  };
  const Result<std::size_t> got = read();
  if (got && *got > 0) return got;
  if (got) return fail_body(kCutOff);
  if (ctx != nullptr && ctx->done()) return got;
  return fail_body(got.error());
}

Result<std::size_t> RequestLoop::read_body(std::span<std::byte> into, const Context* ctx) {
  if (body_.error) return fail_body(*body_.error);
  if (body_.reader.complete() || into.empty()) return std::size_t{0};
  const Result<std::size_t> n = take_from_body(into, ctx);
  if (!n) return n;
  received_of_body(*n);
  if (body_.received > body_bytes_max_) return fail_body(kTooLarge);
  return n;
}

void RequestLoop::received_of_body(std::uint64_t bytes) {
  body_.received += bytes;
  if (body_.separate && body_.reader.complete()) body_read_.store(true, std::memory_order_release);
}

// A body with a length, which the head's limit has let pass.
net::Spliced RequestLoop::splice_to(net::Conn& to, std::uint64_t most, const Context& ctx) {
  using net::detail::ConnParts;
  const bool bare = !body_.error && body_.reader.remaining() > 0 && buffers_->input.empty() &&
                    ConnParts::transport(conn()) == nullptr && ConnParts::transport(to) == nullptr;
  if (!bare) return {.possible = false};
  const SoleReader::Use use(reader_);
  net::Descriptor& from = ConnParts::descriptor(conn());
  const auto wait_for_data = [&] {
    const BodyWait wait(*this, &ctx);
    return from.wait_for_data(&ctx);
  };
  net::Spliced spliced;
  if (const Result<void> ready = wait_for_data(); !ready) {
    spliced.read_error = ready.error();
  } else {
    // Waits for the upstream alone, which must not be held against the client.
    conn().set_read_deadline(body_.deadline);
    most = std::min({most, body_.reader.remaining(), kSplicedMax});
    // Counted before it is passed on: an upstream that has all of it may answer at once, and the head of that answer closes
    // the connection of a client whose body has not ended.
    const auto count = [this](std::size_t bytes) {
      body_.reader.took(bytes);
      received_of_body(bytes);
    };
    spliced = net::splice_received(ConnParts::descriptor(to), from, most, ctx, count);
  }
  if (spliced.read_error && !ctx.done()) spliced.read_error = fail_body(*spliced.read_error).error();
  return spliced;
}

Result<std::size_t> RequestLoop::take_from_body(std::span<std::byte> into, const Context* ctx) {
  BodyReader& reader = body_.reader;
  for (;;) {
    const auto taken = reader.take(buffers_->input, into);
    if (!taken) return fail_body(refusal(taken.error()));
    if (*taken > 0 || reader.complete()) return *taken;
    const bool direct = reader.reads_directly();
    const Result<std::size_t> got =
        read_for_body(direct ? reader.direct(into) : buffers_->input.space(), ctx);
    if (!got) return got;
    if (direct) {
      reader.took(*got);
      return got;
    }
    buffers_->input.filled(*got);
  }
}

}  // namespace tuza::http
