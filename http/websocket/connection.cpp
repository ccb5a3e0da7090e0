#include <tuza/http/websocket/connection.h>

#include <tuza/http/serve/exchange.h>
#include <tuza/http/serve/pooled_read.h>
#include <tuza/http/wire/input.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/sched/detail/lock_guard.h>

#include <exception>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>

namespace tuza::http::websocket {
namespace {

using Step = Assembler::Step;
using Event = Assembler::Event;

// How much of a buffer an idle connection keeps.
constexpr std::size_t kIdleBytes = 1 << 10;
constexpr int kNormal = 1000, kGoingAway = 1001, kInternalError = 1011;

}  // namespace

bool is_utf8(std::string_view text) {
  Utf8 checked;
  return checked.feed(text) && checked.complete();
}

Connection::Impl::Impl(Role ours, HijackedStream stream, const Agreement& agreement, const Options& options,
                       BodyBudget* budget)
    : conn_(stream.conn()),
      input_(stream.received()),
      ping_interval_(options.ping_interval),
      pong_timeout_(options.pong_timeout),
      close_timeout_(options.close_timeout),
      shutdown_grace_(options.shutdown_grace),
      subprotocol_(agreement.subprotocol),
      compressed_(agreement.deflate.has_value()),
      assembler_(peer_of(ours), options.message_bytes_max,
                 compressed_ ? make_inflater(agreement.deflate->window(peer_of(ours))) : nullptr, budget),
      writer_(conn_, ours, lifeline_->ending.ctx()),
      liveness_(conn_),
      exceptions_(std::uncaught_exceptions()) {
  if (compressed_) {
    const DeflateWindow window = agreement.deflate->window(ours);
    writer_.use_deflate(window.bits, window.takeover, options.deflate.level, options.deflate.bytes_min);
  }
}

Connection::Impl::Impl(ClientResponse response, HijackedStream stream, const Agreement& agreement,
                       const Options& options)
    : Impl(Role::kClient, stream, agreement, options, nullptr) {
  response_.emplace(std::move(response));
}

void Connection::Impl::begin(const Context& shutdown) {
  const LockGuard held(lifeline_->mutex);  // the functions wait until all is there
  lifeline_->impl = this;
  if (ping_interval_.count() > 0) {
    pinging_ = after_func(ping_interval_, [lifeline = lifeline_] {
      const LockGuard lock(lifeline->mutex);
      if (lifeline->impl != nullptr) lifeline->impl->tick();
    });
  }
  shutdown_.emplace(when_done(shutdown, [lifeline = lifeline_] {
    const LockGuard lock(lifeline->mutex);
    if (lifeline->impl != nullptr) lifeline->impl->begin_grace();
  }));
}

Connection::Impl::~Impl() {
  leave_lifeline();
  pinging_.stop();
  shutdown_.reset();
  goodbye_.stop();
  try {
    if (!ended_) (void)close_in_time(std::uncaught_exceptions() > exceptions_ ? kInternalError : kNormal);
    while (!ended_) (void)read(Context::background());
    if (response_ && peer_close_) wait_for_server();
  } catch (const std::bad_alloc&) {
    conn_.close();
  }
  lifeline_->ending.cancel();
}

// Waits for the function that runs, if one does: for a ping to a peer that reads nothing, close_timeout at most.
void Connection::Impl::leave_lifeline() {
  if (!lifeline_->mutex.try_lock()) {
    DelayedCall impatience;
    try {
      impatience = after_func(close_timeout_, [lifeline = lifeline_] { lifeline->ending.cancel(); });
    } catch (const std::bad_alloc&) {
      conn_.close();
    }
    lifeline_->mutex.lock();
    impatience.stop();
  }
  const LockGuard lock(lifeline_->mutex, std::adopt_lock);
  lifeline_->impl = nullptr;
}

// The server ends the connection first, so that TIME_WAIT takes none of the client's ports (7.1.1).
void Connection::Impl::wait_for_server() {
  for (;;) {
    const Result<std::size_t> n = conn_.read(input_.space());
    if (!n || *n == 0) return;
    input_.filled(*n);
    input_.consume(input_.unread().size());
  }
}

// By the timer, on a goroutine of its own, which an exception must not leave.
void Connection::Impl::tick() {
  try {
    liveness_.tick(lifeline_->ending.ctx(), writer_, pong_timeout_);
  } catch (const std::bad_alloc&) {
    conn_.close();
  }
  pinging_.reset(ping_interval_);
}

// As tick(), like the next one.
void Connection::Impl::begin_grace() {
  if (shutdown_grace_.count() <= 0) return say_goodbye();
  try {
    goodbye_ = after_func(shutdown_grace_, [lifeline = lifeline_] {
      const LockGuard lock(lifeline->mutex);
      if (lifeline->impl != nullptr) lifeline->impl->say_goodbye();
    });
  } catch (const std::bad_alloc&) {
    say_goodbye();
  }
}

// A handler whose peer reads nothing may be in a write without a context: it must not hold the shutdown up.
void Connection::Impl::say_goodbye() {
  try {
    close_or_break_off(kGoingAway);
  } catch (const std::bad_alloc&) {
    conn_.close();
  }
}

// Without the caller's context.
Result<void> Connection::Impl::close_in_time(int code, std::string_view reason) {
  liveness_.close_within(close_timeout_);
  const auto [ctx, cancel] = with_timeout(Context::background(), close_timeout_);
  return writer_.close(ctx, code, reason);
}

// A writer whose peer takes nothing is waited for no longer than that.
void Connection::Impl::close_or_break_off(int code, std::string_view reason) {
  const Result<void> sent = close_in_time(code, reason);
  if (!sent && !sent.error().is(Errc::kClosed)) conn_.close();
}

Result<Message> Connection::Impl::read(const Context& ctx) {
  if (ended_) return std::unexpected(*ended_);
  for (;;) {
    const Result<Step> next = step(ctx);
    if (!next) return std::unexpected(next.error());
    switch (next->event) {
      case Event::kMessage:
        return Message{.kind = next->opcode == Opcode::kText ? Kind::kText : Kind::kBinary,
                       .data = next->data};
      case Event::kPing: writer_.pong(next->data); break;
      case Event::kClose:
      case Event::kViolation: return end_by(*next);
      case Event::kPong:
      case Event::kMore: break;
    }
  }
}

Result<Step> Connection::Impl::step(const Context& ctx) {
  const std::string_view unread = input_.unread();
  // The bytes are the buffer of the request, which this connection owns now.
  const Step next = assembler_.next({const_cast<char*>(unread.data()), unread.size()});
  input_.consume(next.consumed);
  if (next.event != Event::kMore) return next;
  return read_more(ctx);
}

Result<Step> Connection::Impl::read_more(const Context& ctx) {
  if (input_.empty()) {
    if (const std::span<char> room = assembler_.room(); !room.empty()) return read_into(room, ctx);
  }
  input_.give_back_above(kIdleBytes);
  PooledRead read;
  const Result<std::size_t> n = wait_for([&] { return net::detail::ConnParts::read(conn_, read, &ctx); });
  if (!n || *n == 0) return nothing_came(ctx, n);
  input_.append(read.bytes(*n));
  return Step{};
}

[[gnu::noinline]] Result<Step> Connection::Impl::read_into(std::span<char> room, const Context& ctx) {
  const Result<std::size_t> n = wait_for([&] { return conn_.read(ctx, room); });
  if (!n || *n == 0) return nothing_came(ctx, n);
  return assembler_.filled(*n);
}

// For bytes, which `read` reads.
Result<std::size_t> Connection::Impl::wait_for(auto read) {
  liveness_.before_wait();
  const Result<std::size_t> n = read();
  liveness_.after_wait(n && *n > 0);
  return n;
}

// This and other parts of read() that do not wait, or not for long, are functions of their own, so that their errors and texts
// take no room on the stack of each connection that waits for hours.
[[gnu::noinline]] Result<Step> Connection::Impl::nothing_came(const Context& ctx,
                                                              const Result<std::size_t>& n) {
  if (!n && ctx.done()) return std::unexpected(n.error());  // may be read again
  return std::unexpected(finish(why_nothing(n)));
}

Error Connection::Impl::why_nothing(const Result<std::size_t>& n) {
  if (n) return {Errc::kEndOfStream, "websocket read"};
  if (n.error().timeout()) {
    conn_.close();
    return {Errc::kTimeout, "websocket read", "the peer does not answer"};
  }
  if (writer_.stuck()) return {Errc::kTimeout, "websocket read", "the peer reads nothing"};
  return n.error();
}

[[gnu::noinline]] std::unexpected<Error> Connection::Impl::end_by(const Step& last) {
  if (last.event == Event::kViolation) {
    Error error(Errc::kBadMessage, "websocket read", std::string(last.data));
    close_or_break_off(last.code, last.data);
    return std::unexpected(finish(std::move(error)));
  }
  peer_close_ = CloseStatus{.code = last.code, .reason = std::string(last.data)};
  // 5.5.1: the answer has the same code. If the close frame was ours, this is the answer to it.
  close_or_break_off(last.code);
  return std::unexpected(
      finish(Error(Errc::kClosed, "websocket read", "closed by the peer, " + std::to_string(last.code))));
}

Error Connection::Impl::finish(Error error) {
  writer_.end();
  ended_ = error;
  return error;
}

Result<void> Connection::Impl::write(const Context& ctx, const Message& message) {
  const bool text = message.kind == Kind::kText;
  if (text && !is_utf8(message.data)) {
    return std::unexpected(Error(Errc::kBadMessage, "websocket write", "text that is not UTF-8"));
  }
  return writer_.message(ctx, text ? Opcode::kText : Opcode::kBinary, message.data);
}

Result<void> Connection::Impl::close(const Context& ctx, int code, std::string_view reason) {
  if (!is_close_code(code)) throw std::invalid_argument("impossible close code: " + std::to_string(code));
  if (reason.size() > kControlBytesMax - 2 || !is_utf8(reason)) {
    throw std::invalid_argument("the reason of a close frame is UTF-8 of at most 123 bytes");
  }
  liveness_.close_within(close_timeout_);
  return writer_.close(ctx, code, reason);
}

// -- The public face.

Connection::Connection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Connection::Connection(Connection&&) noexcept = default;
Connection::~Connection() = default;

Result<Message> Connection::read(const Context& ctx) { return impl_->read(ctx); }
Result<void> Connection::write(const Context& ctx, const Message& message) {
  return impl_->write(ctx, message);
}
Result<void> Connection::close(const Context& ctx, int code, std::string_view reason) {
  return impl_->close(ctx, code, reason);
}
const std::optional<CloseStatus>& Connection::peer_close() const { return impl_->peer_close(); }
std::string_view Connection::subprotocol() const { return impl_->subprotocol(); }
bool Connection::compressed() const { return impl_->compressed(); }

}  // namespace tuza::http::websocket
