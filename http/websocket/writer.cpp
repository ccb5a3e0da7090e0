#include <tuza/http/websocket/writer.h>

#include <tuza/http/websocket/assembler.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/sched/detail/lock_guard.h>
#include <tuza/sched/sync/context.h>

#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <span>

namespace tuza::http::websocket {
namespace {

// Up to this size a copy is cheaper than a second piece for the kernel, and over TLS than a second record.
constexpr std::size_t kCopiedBytes = 1 << 10;
// Of a compressed message: each frame but the last.
constexpr std::size_t kCompressedPiece = 16 << 10;
// What is masked and sent at a time.
constexpr std::size_t kMaskedPiece = 16 << 10;

Error no_random_numbers() { return {Errc::kOther, "websocket write", "no random numbers"}; }

}  // namespace

Writer::Writer(net::Conn& conn, Role ours, const Context& ending)
    : conn_(conn), ending_(ending), masking_(ours == Role::kClient ? std::make_unique<Masking>() : nullptr) {}

Writer::~Writer() { sending_rest_.wait(); }

void Writer::use_deflate(int window_bits, bool takeover, int level, std::size_t bytes_min) {
  const LockGuard lock(mutex_);
  compression_.emplace(window_bits, takeover, level, std::max<std::size_t>(bytes_min, 1));
}

Result<void> Writer::message(const Context& ctx, Opcode opcode, std::string_view data) {
  if (!mutex_.try_lock()) {
    if (Result<void> locked = mutex_.lock(ctx); !locked) return locked;
  }
  Result<void> sent;
  {
    const LockGuard lock(mutex_, std::adopt_lock);
    sent = send_message(ctx, opcode, data);
  }
  serve_pongs();
  return sent;
}

Result<void> Writer::send_message(const Context& ctx, Opcode opcode, std::string_view data) {
  if (state_ != State::kOpen || ended_.load(std::memory_order_relaxed)) return std::unexpected(closed());
  // An end that came before the first byte harms nothing.
  if (Result<void> going_on = ctx.check(); !going_on) return going_on;
  if (compression_ && data.size() >= compression_->bytes_min) return send_compressed(ctx, opcode, data);
  return send(ctx, {.opcode = opcode}, data);
}

Result<void> Writer::send_compressed(const Context& ctx, Opcode opcode, std::string_view data) {
  Compression& compression = *compression_;
  if (compression.out == nullptr) compression.out = std::make_unique_for_overwrite<char[]>(kCompressedPiece);
  const std::span<char> out(compression.out.get(), kCompressedPiece);
  OutHead head{.opcode = opcode, .fin = false, .compressed = true};
  std::size_t kept = 0;  // these bytes at the front of `out` may belong to the tail, which is not sent
  for (;;) {
    const Deflater::Progress progress = compression.deflater.feed(data, out.subspan(kept));
    const std::size_t all = kept + progress.produced;
    head.fin = progress.done;
    const std::size_t bytes = all - std::min(all, Deflater::kTailBytes);
    if (Result<void> sent = send(ctx, head, {out.data(), bytes}); !sent || progress.done) return sent;
    head = {.opcode = Opcode::kContinuation};
    kept = all - bytes;
    std::memmove(out.data(), out.data() + bytes, kept);
  }
}

Result<void> Writer::send(const Context& ctx, OutHead head, std::string_view data) {
  Result<void> sent = rest_.empty() ? Result<void>() : send_rest(ctx);
  if (sent) sent = masking_ == nullptr ? send_plain(ctx, head, data) : send_masked(ctx, head, data);
  // The time of a ping is ours: its end says of the peer what the write timeout does.
  if (!sent) break_off(sent.error(), ctx, head.opcode != Opcode::kPing);
  return sent;
}

// After a write that has failed. `callers`: the context is, and its end says nothing of the peer.
void Writer::break_off(const Error& error, const Context& ctx, bool callers) {
  state_ = State::kBroken;
  const bool ended = ctx.done();
  if (error.timeout() && !(ended && callers)) stuck_.store(true, std::memory_order_relaxed);
  // The kernel need not keep what a peer does not read.
  if (error.timeout() || ended) (void)conn_.set_linger_zero();
  conn_.close();
}

// In a frame of its own for each size: the stack of a connection keeps what it has touched, and most messages are small.
template <std::size_t kBytesMax>
[[gnu::noinline]] Result<void> Writer::send_copied(const Context& ctx, OutHead head, std::string_view data) {
  std::array<char, kHeadBytesMax + kBytesMax> frame;
  const std::size_t head_bytes =
      write_frame_head(std::span(frame).template first<kHeadBytesMax>(), head, data.size());
  data.copy(frame.data() + head_bytes, kBytesMax);
  return conn_.write_all(ctx, std::string_view(frame.data(), head_bytes + data.size()));
}

Result<void> Writer::send_plain(const Context& ctx, OutHead head, std::string_view data) {
  if (data.size() <= kControlBytesMax) return send_copied<kControlBytesMax>(ctx, head, data);
  if (data.size() <= kCopiedBytes) return send_copied<kCopiedBytes>(ctx, head, data);
  std::array<char, kHeadBytesMax> bytes;
  std::array<struct iovec, 2> pieces{{{bytes.data(), write_frame_head(bytes, head, data.size())},
                                      {const_cast<char*>(data.data()), data.size()}}};
  return conn_.writev_all(ctx, pieces);
}

[[gnu::noinline]] Result<void> Writer::send_masked(const Context& ctx, OutHead head, std::string_view data) {
  std::array<char, kHeadBytesMax + kCopiedBytes> small;
  std::span<char> out = small;
  if (data.size() > kCopiedBytes) {
    if (masking_->out == nullptr) masking_->out = std::make_unique_for_overwrite<char[]>(kMaskedPiece);
    out = {masking_->out.get(), kMaskedPiece};
  }
  head.mask = masking_->keys.next();
  if (!head.mask) return std::unexpected(no_random_numbers());
  std::size_t used = write_frame_head(out.first<kHeadBytesMax>(), head, data.size());
  for (std::size_t at = 0;;) {
    const std::span<char> piece = out.subspan(used, std::min(out.size() - used, data.size() - at));
    data.copy(piece.data(), piece.size(), at);
    apply_mask(piece, *head.mask, at);
    at += piece.size();
    Result<void> sent = conn_.write_all(ctx, std::string_view(out.data(), used + piece.size()));
    if (!sent || at == data.size()) return sent;
    used = 0;
  }
}

void Writer::pong(std::string_view payload) {
  {
    const LockGuard lock(pong_mutex_);
    pong_waits_ = true;
    pong_bytes_ = static_cast<std::uint8_t>(payload.size());
    if (!payload.empty()) std::memcpy(pong_.data(), payload.data(), payload.size());
  }
  serve_pongs();
}

bool Writer::pong_waits() {
  const LockGuard lock(pong_mutex_);
  return pong_waits_;
}

// After a pong was left, and after mutex_ was released: a caller that finds mutex_ taken leaves the pong to its holder, which
// comes here next. The order of pong_mutex_ sees to it that one of both finds the pong and mutex_ free.
void Writer::serve_pongs() {
  while (pong_waits() && mutex_.try_lock()) {
    const LockGuard lock(mutex_, std::adopt_lock);
    if (!begin_waiting_pong()) return send_rest_elsewhere();
  }
}

// False: something is left to be sent.
bool Writer::begin_waiting_pong() {
  if (state_ == State::kOpen && !rest_.empty()) return false;
  std::array<char, kControlBytesMax> payload;
  std::size_t bytes = 0;
  {
    const LockGuard lock(pong_mutex_);
    if (!pong_waits_) return true;
    pong_waits_ = false;
    bytes = pong_bytes_;
    std::memcpy(payload.data(), pong_.data(), bytes);
  }
  if (state_ != State::kOpen) return true;
  const Result<bool> sent = begin_pong({payload.data(), bytes});
  if (!sent) break_off(sent.error(), ending_, true);
  return !sent || *sent;
}

Result<bool> Writer::begin_pong(std::string_view payload) {
  OutHead head{.opcode = Opcode::kPong};
  if (masking_ != nullptr) {
    head.mask = masking_->keys.next();
    if (!head.mask) return std::unexpected(no_random_numbers());
  }
  std::array<char, kHeadBytesMax + kControlBytesMax> frame;
  const std::size_t head_bytes =
      write_frame_head(std::span(frame).first<kHeadBytesMax>(), head, payload.size());
  payload.copy(frame.data() + head_bytes, payload.size());
  if (head.mask) apply_mask(std::span(frame).subspan(head_bytes, payload.size()), *head.mask, 0);
  const std::string_view all(frame.data(), head_bytes + payload.size());
  const Result<std::size_t> sent = conn_.try_write(all);
  if (!sent) return std::unexpected(sent.error());
  rest_.assign(all.substr(*sent));
  // TLS takes all of it even where the socket has no room.
  return rest_.empty() && net::detail::ConnParts::transport(conn_) == nullptr;
}

// A holder of mutex_ that leaves a rest sees to it that a goroutine takes mutex_ later. Without memory for one, the rest goes with
// the next frame: a message, or a ping of the timer.
void Writer::send_rest_elsewhere() {
  if (rest_is_sent_elsewhere_) return;
  rest_is_sent_elsewhere_ =
      sending_rest_.try_go({.name = "websocket pong"}, [this] { finish_rest(); }).has_value();
}

void Writer::finish_rest() {
  if (!mutex_.lock(ending_)) return;
  {
    const LockGuard lock(mutex_, std::adopt_lock);
    rest_is_sent_elsewhere_ = false;
    if (state_ != State::kOpen) return;
    if (const Result<void> sent = send_rest(ending_); !sent) return break_off(sent.error(), ending_, true);
  }
  serve_pongs();
}

// If there is none, TLS sends what it has taken.
Result<void> Writer::send_rest(const Context& ctx) {
  std::array<struct iovec, 1> piece{{{rest_.data(), rest_.size()}}};
  Result<void> sent = conn_.writev_all(ctx, std::span(piece).first(rest_.empty() ? 0 : 1));
  rest_.clear();
  return sent;
}

bool Writer::ping(const Context& ctx) {
  if (!mutex_.try_lock()) return false;
  bool sent = false;
  {
    const LockGuard lock(mutex_, std::adopt_lock);
    sent = state_ == State::kOpen && !ended_.load(std::memory_order_relaxed) &&
           send(ctx, {.opcode = Opcode::kPing}, {}).has_value();
  }
  serve_pongs();
  return sent;
}

Result<void> Writer::close(const Context& ctx, int code, std::string_view reason) {
  if (Result<void> locked = mutex_.lock(ctx); !locked) return locked;
  const LockGuard lock(mutex_, std::adopt_lock);
  if (state_ != State::kOpen || ended_.load(std::memory_order_relaxed)) return std::unexpected(closed());
  std::array<char, kControlBytesMax> payload;
  std::size_t bytes = 0;
  if (code != Assembler::kNoCode) {
    payload[0] = static_cast<char>(code >> 8);
    payload[1] = static_cast<char>(code);
    bytes = 2 + reason.copy(payload.data() + 2, payload.size() - 2);
  }
  Result<void> sent = send(ctx, {.opcode = Opcode::kClose}, {payload.data(), bytes});
  if (sent) state_ = State::kClosed;
  return sent;
}

}  // namespace tuza::http::websocket
