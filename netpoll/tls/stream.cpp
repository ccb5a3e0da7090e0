// Reading, writing and closing a TLS stream. The handshake is in handshake.cpp.
#include <tuza/netpoll/tls/stream.h>

#include <sys/socket.h>
#include <tuza/netpoll/socket/socket_queues.h>
#include <tuza/netpoll/tls/call.h>
#include <tuza/netpoll/tls/hold.h>
#include <tuza/sched/arch/calls.h>
#include <tuza/sched/rt/base/fork.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/time/clock.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>

namespace tuza::net::tls {
namespace {

using Direction = Descriptor::Side;

constexpr std::size_t kRecordBytes = SSL3_RT_MAX_PLAIN_LENGTH;
// What AEAD adds to a TLS 1.2 record: header, nonce, tag. TLS 1.3 needs less.
constexpr std::size_t kRecordOverhead = 5 + 8 + 16;
// A write of that many bytes becomes 32 records for a peer that limits records to 512 bytes (RFC 6066); a
// message or an alert may be added. Two full records still fit into one buffer, and so into one system call.
constexpr std::size_t kRecordRoom = kRecordBytes + 32 * kRecordOverhead + 64;
static_assert(kRecordBytes + kRecordOverhead + kRecordRoom <= Buffer::kBytes);

constexpr std::chrono::seconds kFarewellTime{5};
// How long a write waits for the rest of a message that the peer has begun to send.
constexpr std::chrono::seconds kMessageTime{5};
// Polling intervals for conditions that no event reports: short at first, then longer.
constexpr std::chrono::milliseconds kLookAgain{1}, kLookAgainMax{50};
// How long, at most, a reader that waits for room to write does not react to its own deadline.
constexpr std::chrono::milliseconds kRoomTimeMax{1000};
constexpr std::size_t kTicketsMax = 64 << 10;

std::chrono::milliseconds longer(std::chrono::milliseconds pause,
                                 std::chrono::milliseconds max = kLookAgainMax) {
  return std::min(2 * pause, max);
}

// Splits the pieces of a write into the data of one record each. Small pieces are gathered into a buffer; a
// piece that fills a record alone is used in place.
class Gather {
 public:
  explicit Gather(std::span<struct iovec> pieces) : pieces_(pieces) { skip_empty(); }
  ~Gather() {
    if (scratch_ != nullptr) Buffer::give_back(scratch_);
  }
  Gather(const Gather&) = delete;
  Gather& operator=(const Gather&) = delete;

  [[nodiscard]] bool done() const { return pieces_.empty(); }
  // Returns the data of the next record, and removes it from the pieces.
  std::span<const std::byte> next() {
    if (pieces_.size() == 1 || pieces_.front().iov_len >= kRecordBytes) {
      return take(std::min(pieces_.front().iov_len, kRecordBytes));
    }
    if (scratch_ == nullptr) scratch_ = Buffer::take();
    std::size_t filled = 0;
    while (filled < kRecordBytes && !done()) {
      const std::span<const std::byte> part = take(std::min(pieces_.front().iov_len, kRecordBytes - filled));
      std::memcpy(scratch_->bytes.data() + filled, part.data(), part.size());
      filled += part.size();
    }
    return std::span(scratch_->bytes).first(filled);
  }

 private:
  std::span<const std::byte> take(std::size_t n) {
    struct iovec& first = pieces_.front();
    const std::span taken(static_cast<const std::byte*>(first.iov_base), n);
    first.iov_base = static_cast<std::byte*>(first.iov_base) + n;
    first.iov_len -= n;
    skip_empty();
    return taken;
  }
  void skip_empty() {
    while (!pieces_.empty() && pieces_.front().iov_len == 0) pieces_ = pieces_.subspan(1);
  }
  std::span<struct iovec> pieces_;
  Buffer* scratch_ = nullptr;
};

}  // namespace

Error Stream::fail(const Outcome& outcome, std::string_view op) {
  const Error error =
      outcome.code ? Error(outcome.code, op, side_->peer()) : Error(Errc::kEndOfStream, op, side_->peer());
  if (broken_ == nullptr) broken_ = std::make_unique<const Error>(error);
  return *broken_;
}

Result<std::size_t> Stream::read(std::span<std::byte> into, LazyBuffer* lazy, const Context* ctx) {
  rt::parking_point();
  if (!open()) [[unlikely]] {
    if (Result<void> shaken = handshake(For::kRead, ctx); !shaken) return std::unexpected(shaken.error());
  }
  const Hold lock(reading_, ctx);
  if (!lock.locked()) return std::unexpected(lock.locked().error());
  if (Result<void> may = descriptor_.may_start(Direction::kRead, "read", ctx); !may) {
    return std::unexpected(may.error());
  }
  if (lazy == nullptr && into.empty()) return std::size_t{0};
  return read_locked(into, lazy, ctx);
}

Result<std::size_t> Stream::read_locked(std::span<std::byte> into, LazyBuffer* lazy, const Context* ctx) {
  Refill refill;
  std::chrono::milliseconds pause = kLookAgain;
  for (;;) {
    if (may_have_plaintext_ || refill.has_bytes()) {
      if (lazy != nullptr) into = lazy->take();
      bool wants_more = false, wants_room = false;
      const Result<std::size_t> n = take_plaintext(into, refill, wants_more, wants_room);
      if (leftovers_.load(std::memory_order_relaxed) != 0) [[unlikely]]
        send_leftovers();
      if (!wants_more && n) return n;
      if (lazy != nullptr) lazy->give_back();
      if (!n) return n;
      if (wants_room) {
        if (Result<void> may = wait_for_room(pause, ctx); !may) return std::unexpected(may.error());
        continue;
      }
    } else if (leftovers_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      send_leftovers();
    }
    if (std::exchange(tickets_held_, false)) [[unlikely]]
      send_leftovers();
    const Result<std::size_t> got = descriptor_.read(refill, ctx);
    if (!got) return got;
    if (*got == 0) {
      return std::unexpected(Error(Errc::kEndOfStream, "read", "tls: closed without close_notify"));
    }
    refill.filled(*got);
  }
}

// For a reader whose peer requests answers of the TLS protocol but does not read them. Sends for at most
// `pause`, since the read deadline does not wake a goroutine that waits to write. If another goroutine is
// writing, sleeps instead, and the caller retries.
Result<void> Stream::wait_for_room(std::chrono::milliseconds& pause, const Context* ctx) {
  const std::chrono::milliseconds at_most = std::exchange(pause, longer(pause, kRoomTimeMax));
  bool waited = false;
  Result<void> sent;
  if (writing_.try_lock()) {
    {
      const Hold lock(writing_, std::adopt_lock);
      const auto [limit, cancel] = with_timeout(ctx != nullptr ? *ctx : Context::background(), at_most);
      sent = send_out(&limit);
      waited = sent || limit.done();
    }
    check_mark();
  }
  if (Result<void> may = descriptor_.may_start(Direction::kRead, "read", ctx); !may) return may;
  if (!sent && !sent.error().timeout()) return sent;
  if (!waited) sleep_for(std::min(at_most, kLookAgainMax));  // also if a write deadline has passed
  return {};
}

// 0 with `wants_more` false is the end of the stream. `wants_room`: more of wire_.out must be sent first.
Result<std::size_t> Stream::take_plaintext(std::span<std::byte> into, Refill& refill, bool& wants_more,
                                           bool& wants_room) {
  const LockGuard lock(ssl_mutex_);
  if (broken_ != nullptr) return std::unexpected(*broken_);
  refill.move_into(wire_.in);
  std::size_t n = 0;
  const Outcome outcome = call([&](SSL* ssl) { return SSL_read_ex(ssl, into.data(), into.size(), &n); });
  // After the peer has ended the stream, every later read must report the end again, so it asks OpenSSL too.
  may_have_plaintext_ =
      !wire_.in.empty() || SSL_pending(ssl_.get()) > 0 || outcome.status == SSL_ERROR_ZERO_RETURN;
  if (outcome.status != SSL_ERROR_NONE && !wire_.out.empty()) {
    leftovers_.store(1, std::memory_order_relaxed);
  }
  switch (outcome.status) {
    case SSL_ERROR_NONE:
    case SSL_ERROR_ZERO_RETURN: return n;
    case SSL_ERROR_WANT_READ: wants_more = true; return std::size_t{0};
    case SSL_ERROR_WANT_WRITE:  // no room for an answer of TLS itself; OpenSSL continues when there is room
      wants_more = wants_room = may_have_plaintext_ = true;
      return std::size_t{0};
    default: return std::unexpected(fail(outcome, "tls read"));
  }
}

Result<void> Stream::write_all(std::span<struct iovec> pieces, const Context* ctx, bool last) {
  rt::parking_point();
  if (!open()) [[unlikely]] {
    if (Result<void> shaken = handshake(For::kWrite, ctx); !shaken) return shaken;
  }
  Result<void> result;
  {
    const Hold lock(writing_, ctx);
    result = lock.locked();
    if (result) result = descriptor_.may_start(Direction::kWrite, "write", ctx);
    if (result) result = write_locked(pieces, ctx, last);
  }
  check_mark();
  return result;
}

// What is encrypted, but finds no room in the socket, is sent with the next write.
Result<std::size_t> Stream::try_write(std::span<const std::byte> data) {
  constexpr std::size_t kRecordMax = 16 << 10;
  if (!open() || !writing_.try_lock()) return std::size_t{0};
  Result<std::size_t> taken = std::size_t{0};
  {
    const LockGuard lock(writing_, std::adopt_lock);
    while (!goodbye_said_ && taken && *taken < data.size()) {
      const std::span<const std::byte> record =
          data.subspan(*taken, std::min(data.size() - *taken, kRecordMax));
      const Result<int> status = try_to_encrypt(record);
      if (!status) taken = std::unexpected(status.error());
      if (!status || *status != SSL_ERROR_NONE) break;
      *taken += record.size();
    }
    const LockGuard ssl_lock(ssl_mutex_);
    send_without_waiting();
  }
  check_mark();
  return taken;
}

Result<void> Stream::write_locked(std::span<struct iovec> pieces, const Context* ctx, bool last) {
  if (goodbye_said_) return std::unexpected(Error::from_errno(EPIPE, "write"));
  for (Gather gather(pieces); !gather.done();) {
    if (Result<void> encrypted = encrypt(gather.next(), ctx); !encrypted) return encrypted;
  }
  if (last) {
    const LockGuard lock(ssl_mutex_);
    say_goodbye();
  }
  return send_out(ctx);
}

Result<void> Stream::encrypt(std::span<const std::byte> data, const Context* ctx) {
  std::optional<TimePoint> message_by;
  std::chrono::milliseconds pause = kLookAgain;
  for (;;) {
    const Result<int> status = try_to_encrypt(data);
    if (!status) return std::unexpected(status.error());
    if (*status == SSL_ERROR_NONE) [[likely]]
      return {};
    if (*status == SSL_ERROR_WANT_WRITE) {
      if (Result<void> sent = send_out(ctx); !sent) return sent;
      continue;
    }
    const TimePoint now = tuza::now();
    if (!message_by) message_by = now + kMessageTime;
    if (now >= *message_by) return std::unexpected(Error(Errc::kTimeout, "tls write", side_->peer()));
    if (Result<void> read = read_message(pause, ctx); !read) return read;
  }
}

// SSL_ERROR_NONE, or a reason to retry with the same data. WANT_WRITE: there is no room in wire_.out.
// WANT_READ: the peer is in the middle of a TLS protocol message (tickets, keys), and OpenSSL writes nothing
// until it has the whole message.
Result<int> Stream::try_to_encrypt(std::span<const std::byte> data) {
  const LockGuard lock(ssl_mutex_);
  if (broken_ != nullptr) return std::unexpected(*broken_);
  if (wire_.out.room() < kRecordRoom) return SSL_ERROR_WANT_WRITE;
  std::size_t n = 0;
  const Outcome outcome = call([&](SSL* ssl) { return SSL_write_ex(ssl, data.data(), data.size(), &n); });
  switch (outcome.status) {
    case SSL_ERROR_NONE:
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE: return outcome.status;
    default: return std::unexpected(fail(outcome, "tls write"));
  }
}

// For a writer: reads more of the peer's message, if it has arrived and no other goroutine is reading. A
// reading goroutine delivers the message as well. This case is very rare, so the function polls now and then
// instead of waiting for an event.
Result<void> Stream::read_message(std::chrono::milliseconds& pause, const Context* ctx) {
  if (Result<void> may = descriptor_.may_start(Direction::kWrite, "write", ctx); !may) return may;
  Result<long> got = 0L;
  if (reading_.try_lock()) {
    const LockGuard lock(reading_, std::adopt_lock);
    {
      const LockGuard ssl_lock(ssl_mutex_);
      if (!wire_.in.empty()) return {};  // another goroutine has read meanwhile
    }
    Refill refill;
    const std::span<std::byte> into = refill.take();
    got = descriptor_.control("read", [into](int fd) {
      const long n = sys::recvfrom(fd, into.data(), into.size(), MSG_DONTWAIT, nullptr, nullptr);
      return n == -EAGAIN || n == -EINTR ? 0 : n == 0 ? -EPIPE : n;
    });
    if (got && *got > 0) {
      refill.filled(static_cast<std::size_t>(*got));
      const LockGuard ssl_lock(ssl_mutex_);
      refill.move_into(wire_.in);
      may_have_plaintext_ = true;
      return {};
    }
  }
  if (!got) return std::unexpected(got.error());
  sleep_for(std::exchange(pause, longer(pause)));
  return {};
}

// Sends all of wire_.out. After a failure, the unsent rest goes first next time.
Result<void> Stream::send_out(const Context* ctx) {
  for (;;) {
    std::span<const std::byte> unsent;
    {
      const LockGuard lock(ssl_mutex_);
      unsent = wire_.out.unread();
      if (unsent.empty()) leftovers_.store(0, std::memory_order_relaxed);
    }
    if (unsent.empty()) return {};
    Sending sending(out(), unsent, ssl_mutex_);
    Result<void> sent = descriptor_.write_on(sending.left, ctx);
    {
      const LockGuard lock(ssl_mutex_);
      sending.consume();
      if (sent && wire_.out.empty()) {
        leftovers_.store(0, std::memory_order_relaxed);
        return {};
      }
    }
    if (!sent) return sent;
  }
}

void Stream::send_without_waiting() {
  if (const std::span<const std::byte> unsent = wire_.out.unread(); !unsent.empty()) {
    const Result<long> sent = descriptor_.control("write", [unsent](int fd) {
      return sys::sendto(fd, unsent.data(), unsent.size(), MSG_NOSIGNAL | MSG_DONTWAIT, nullptr, 0);
    });
    if (sent) wire_.out.consume(static_cast<std::size_t>(*sent));
  }
  if (wire_.out.empty()) leftovers_.store(0, std::memory_order_relaxed);
}

void Stream::send_leftovers() {
  leftovers_.fetch_or(1, std::memory_order_acq_rel);
  bool sent_all = true;
  do {
    if (!writing_.try_lock()) return;  // the holder checks the mark afterwards
    {
      const LockGuard lock(ssl_mutex_);
      send_without_waiting();
      sent_all = wire_.out.empty();
    }
    writing_.unlock();
    // Another goroutine may have set the mark since, and have found the lock taken. Data for which the socket
    // has no room is left to the next write.
  } while (sent_all && leftovers_.fetch_or(0, std::memory_order_acq_rel) != 0);
}

// Called after releasing writing_. send_leftovers() sets the mark and then tries the lock. Both sides change
// the same word, so one change comes first: either the mark is seen here, or the released lock is seen there.
void Stream::check_mark() {
  if (leftovers_.fetch_or(0, std::memory_order_acq_rel) != 0) [[unlikely]]
    send_leftovers();
}

void Stream::say_goodbye() {
  if (!open() || broken_ != nullptr || std::exchange(goodbye_said_, true)) return;
  if (rt::is_forked_child()) return;  // the connection still belongs to the parent
  (void)call([](SSL* ssl) { return SSL_shutdown(ssl); });
}

Result<void> Stream::close_write() {
  {
    const Hold lock(writing_);
    {
      const LockGuard ssl_lock(ssl_mutex_);
      say_goodbye();
    }
    if (Result<void> sent = send_out(nullptr); !sent) return sent;
  }
  check_mark();
  const Result<long> ended =
      descriptor_.control("shutdown", [](int fd) { return sys::shutdown(fd, SHUT_WR); });
  if (!ended) return std::unexpected(ended.error());
  return {};
}

void Stream::farewell() {
  if (aborted_.load(std::memory_order_relaxed)) return;
  const TimePoint by = tuza::now() + kFarewellTime;
  {
    const Hold lock(writing_);
    bool sent_all = false;
    {
      const LockGuard ssl_lock(ssl_mutex_);
      say_goodbye();
      send_without_waiting();
      sent_all = wire_.out.empty();
    }
    if (!sent_all) {
      const auto [limit, cancel] = with_deadline(Context::background(), by);
      if (!send_out(&limit)) return;
    }
    if (!goodbye_said_) return;
  }
  if (!side_->is_server() || !reading_.try_lock()) return;
  const LockGuard lock(reading_, std::adopt_lock);
  outlast_answer(by);
}

// Data that the client sends while the answer is on its way, at least its own close_notify, is never read. If
// a socket is closed with such data unread, or receives it after the close, the connection is reset, and the
// data in the send queue is lost. So this function waits in two cases: if a part of the answer has not been
// sent yet, and if the client has already sent something before it had the whole answer. Other clients mostly
// send only after receiving the answer, and are not waited for: waiting cost a tenth of a full handshake. A
// client loses data in one remaining case: it sends something between the close and the end of the answer,
// and a packet of the answer is lost on the way.
void Stream::outlast_answer(TimePoint by) {
  // Also true if the system does not tell.
  const auto is_queued = [this](socket_queues::Bytes (*queue)(int)) {
    bool some = false;
    const auto ask = [&](int fd) {
      some = queue(fd) != 0;
      return 0L;
    };
    return descriptor_.control("ioctl", ask) && some;
  };
  const auto has_spoken = [this]() TUZA_REQUIRES(reading_) {
    const LockGuard lock(ssl_mutex_);
    return may_have_plaintext_ || !wire_.in.empty();
  };
  if (!is_queued(socket_queues::unsent) && !is_queued(socket_queues::unread) && !has_spoken()) return;
  if (!is_queued(socket_queues::unacknowledged)) return;
  (void)descriptor_.control("shutdown", [](int fd) { return sys::shutdown(fd, SHUT_WR); });
  Refill scrap;
  for (std::chrono::milliseconds pause = kLookAgain; is_queued(socket_queues::unacknowledged);
       pause = longer(pause)) {
    const TimePoint now = tuza::now();
    if (now >= by) return;
    // The handler has returned, so its deadlines no longer apply.
    descriptor_.set_deadline(Direction::kRead, (now + pause).time_since_epoch().count());
    const Result<std::size_t> got = descriptor_.read(scrap, nullptr);
    if (got ? *got == 0 : !got.error().timeout()) return;
    scrap.give_back();
  }
}

bool Stream::may_hold_data() {
  const Hold lock(reading_);
  return may_have_plaintext_;
}

void Stream::closing() {
  if (!open() || aborted_.load(std::memory_order_relaxed) || !writing_.try_lock()) return;
  if (ssl_mutex_.try_lock()) {
    say_goodbye();
    send_without_waiting();
    ssl_mutex_.unlock();
  }
  // A client that only writes has not read its tickets. Closing a socket with unread data resets the
  // connection, and the server would lose the data that it has not read by then.
  if (!side_->is_server() && reading_.try_lock()) {
    (void)descriptor_.control("read", [](int fd) { return socket_queues::discard(fd, kTicketsMax); });
    reading_.unlock();
  }
  writing_.unlock();
}

}  // namespace tuza::net::tls
