// The handshake of a Stream, and information about its result.
#include <openssl/err.h>
#include <tuza/netpoll/tls/call.h>
#include <tuza/netpoll/tls/hold.h>
#include <tuza/netpoll/tls/stream.h>
#include <tuza/sched/rt/slice/handoff.h>
#include <tuza/sched/time/clock.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <string_view>

namespace tuza::net::tls {
namespace {

enum class Opening : std::uint8_t { kHttp, kOther, kUndecided };

constexpr std::size_t kOpeningBytesMax = 64;

// The method of HTTP with which the connection begins, as far as it is there.
std::string_view method_of(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of("\r\n"), text.size()));
  return text.substr(0, text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ-"));
}

// What a connection begins with. OpenSSL knows four methods of HTTP only. The first byte of TLS is the type of a record,
// which is neither a letter nor a line end: what may become HTTP is no TLS.
Opening judge(std::string_view text) {
  constexpr std::size_t kMethodBytesMax = 32;
  const std::string_view method = method_of(text);
  if (method.size() > kMethodBytesMax) return Opening::kOther;
  const char* const end = method.data() + method.size();
  if (end == text.data() + text.size()) return Opening::kUndecided;
  return !method.empty() && *end == ' ' ? Opening::kHttp : Opening::kOther;
}

// How often a call that waits for the handshake of another one looks: no event reports its end, or a new deadline.
constexpr std::chrono::milliseconds kFirstLook{1}, kLooksMax{50};

}  // namespace

bool Stream::try_lock_both() {
  if (!reading_.try_lock()) return false;
  if (writing_.try_lock()) return true;
  reading_.unlock();
  return false;
}

Result<void> Stream::may_shake(For caller, const Context* ctx, TimePoint begun) {
  Result<void> may;
  if (caller != For::kWrite) may = descriptor_.may_start(Descriptor::Side::kRead, "read", ctx);
  if (may && caller != For::kRead) may = descriptor_.may_start(Descriptor::Side::kWrite, "write", ctx);
  const std::chrono::nanoseconds limit(caller == For::kWrite ? descriptor_.write_timeout_ns() : 0);
  if (may && limit.count() != 0 && tuza::now() - begun >= limit) {
    return std::unexpected(Error(Errc::kTimeout, "write"));
  }
  return may;
}

// The goroutine that has both locks may be in the handshake of a call of the other direction, with another deadline.
Result<void> Stream::handshake(For caller, const Context* ctx) {
  if (open()) return {};
  rt::parking_point();
  const TimePoint begun = tuza::now();
  for (auto pause = kFirstLook; !try_lock_both(); pause = std::min(pause * 2, kLooksMax)) {
    if (open()) return {};
    if (Result<void> may = may_shake(caller, ctx, begun); !may) return may;
    sleep_for(pause);
  }
  const Hold reading(reading_, std::adopt_lock), writing(writing_, std::adopt_lock);
  switch (state_.load(std::memory_order_relaxed)) {
    case State::kOpen: return {};
    case State::kNew: {
      if (caller == For::kItself) return shake_hands(ctx);
      const bool read = caller == For::kRead;
      const Descriptor::OneDeadline one(descriptor_,
                                        read ? Descriptor::Side::kRead : Descriptor::Side::kWrite);
      return shake_hands(ctx);
    }
    case State::kFailed: break;
  }
  const LockGuard ssl_lock(ssl_mutex_);
  return std::unexpected(*broken_);
}

// If the caller itself ends the call (by its context, its deadline, or close()), the handshake continues with
// the next call. Every other error is final.
Result<void> Stream::shake_hands(const Context* ctx) {
  if (!shaken_by_) shaken_by_ = time_after_now(side_->handshake_timeout());
  const Context parent = ctx != nullptr ? *ctx : Context::background();
  if (parent.done()) return std::unexpected(parent.cause());
  Result<void> result;
  {
    const auto [limit, cancel] = with_deadline(parent, *shaken_by_);
    result = exchange_flights(limit);
  }
  if (result) {
    state_.store(State::kOpen, std::memory_order_release);
    return {};
  }
  const LockGuard lock(ssl_mutex_);
  send_without_waiting();  // an alert tells the peer the reason
  const bool in_time = tuza::now() < *shaken_by_;
  const bool callers_own = result.error().closed() || parent.done() || (result.error().timeout() && in_time);
  if (callers_own) return result;
  const std::string_view op = result.error().op();
  if (result.error().timeout()) {
    result = std::unexpected(Error(Errc::kTimeout, "tls handshake", side_->peer()));
  } else if (op == "read" || op == "write") {
    result = std::unexpected(Error(result.error().code(), "tls handshake", side_->peer()));
  }
  if (broken_ == nullptr) broken_ = std::make_unique<const Error>(result.error());
  state_.store(State::kFailed, std::memory_order_release);
  return result;
}

Result<void> Stream::begin() {
  Result<Side::Begun> begun = side_->begin();
  if (!begun) return std::unexpected(begun.error());
  const LockGuard lock(ssl_mutex_);
  BIO* bio = wire_.make_bio();
  if (bio == nullptr) return std::unexpected(Error::from_errno(ENOMEM, "tls handshake"));
  SSL_set_bio(begun->ssl.get(), bio, bio);
  ssl_ = std::move(begun->ssl);
  kept_ = std::move(begun->kept);
  return {};
}

Stream::Outcome Stream::next_flight(Refill& refill) {
  const LockGuard lock(ssl_mutex_);
  refill.move_into(wire_.in);
  const Outcome outcome = call([](SSL* ssl) { return SSL_do_handshake(ssl); });
  may_have_plaintext_ = !wire_.in.empty();
  // Without this, 17 KB would stay allocated for a client that has nothing to send for now.
  if (outcome.status == SSL_ERROR_NONE && !may_have_plaintext_) SSL_free_buffers(ssl_.get());
  // In TLS 1.3 a server's last flight is the tickets. They are sent with the answer to the request that is
  // already here, or when the reader has to wait. In TLS 1.2 the client needs the last flight to complete its
  // handshake.
  tickets_held_ = outcome.status == SSL_ERROR_NONE && may_have_plaintext_ && side_->is_server() &&
                  SSL_version(ssl_.get()) >= TLS1_3_VERSION;
  return outcome;
}

Result<void> Stream::read_flight(Refill& refill, const Context& ctx) {
  const Result<std::size_t> got = descriptor_.read(refill, &ctx);
  if (!got) return std::unexpected(got.error());
  if (*got == 0) return std::unexpected(Error(Errc::kEndOfStream, "tls handshake", side_->peer()));
  refill.filled(*got);
  return {};
}

// The client sends first. What may become plain HTTP arrives in any pieces.
Result<void> Stream::read_opening(Refill& refill, const Context& ctx) {
  std::array<char, kOpeningBytesMax> kept;
  std::size_t size = 0;
  for (int reads = 1;; ++reads) {
    if (Result<void> read = read_flight(refill, ctx); !read) return read;
    const std::span<const std::byte> got = refill.bytes();
    const std::size_t more = std::min(got.size(), kept.size() - size);
    std::memcpy(kept.data() + size, got.data(), more);
    size += more;
    const std::string_view text(kept.data(), size);
    const Opening opening = judge(text);
    if (opening == Opening::kHttp) {
      return std::unexpected(Error(plain_http_code(), "tls handshake", std::string(method_of(text))));
    }
    if (opening == Opening::kUndecided && size < kept.size()) continue;
    if (reads == 1) return {};
    // Neither HTTP nor TLS: OpenSSL fails by the first bytes.
    refill.give_back();
    const LockGuard lock(ssl_mutex_);
    wire_.in.append(std::as_bytes(std::span(kept).first(size)));
    return {};
  }
}

Result<void> Stream::exchange_flights(const Context& ctx) {
  Refill refill;
  if (!begun()) {
    // The SSL object is created only after the first data: it takes about 40 KB, which an attacker could otherwise tie up
    // with each silent connection.
    if (side_->is_server()) {
      if (Result<void> read = read_opening(refill, ctx); !read) return read;
    }
    if (Result<void> begun = begin(); !begun) return begun;
  }
  for (;;) {
    const Outcome outcome = next_flight(refill);
    switch (outcome.status) {
      case SSL_ERROR_NONE: return tickets_held_ ? Result<void>{} : send_out(&ctx);
      case SSL_ERROR_WANT_WRITE:
      case SSL_ERROR_WANT_READ:
        if (Result<void> sent = send_out(&ctx); !sent) return sent;
        break;
      default: {
        const LockGuard lock(ssl_mutex_);
        return std::unexpected(fail(outcome, "tls handshake"));
      }
    }
    if (outcome.status != SSL_ERROR_WANT_READ) continue;
    if (Result<void> read = read_flight(refill, ctx); !read) return read;
  }
}

namespace {

std::string subject_of(const X509* certificate) {
  const Owner<BIO> bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(certificate), 0,
                     XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
  char* text = nullptr;
  const long length = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<std::size_t>(length)};
}

}  // namespace

std::optional<TlsInfo> Stream::tls_info() {
  if (!open()) return std::nullopt;
  const LockGuard lock(ssl_mutex_);
  clear_errors();
  SSL* ssl = ssl_.get();
  TlsInfo info;
  info.version = SSL_get_version(ssl);
  info.cipher = SSL_get_cipher_name(ssl);
  const unsigned char* protocol = nullptr;
  unsigned length = 0;
  SSL_get0_alpn_selected(ssl, &protocol, &length);
  if (length > 0) info.alpn.assign(reinterpret_cast<const char*>(protocol), length);
  if (const char* name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name); name != nullptr) {
    info.server_name = name;
  }
  if (const X509* peer = SSL_get0_peer_certificate(ssl); peer != nullptr)
    info.peer_subject = subject_of(peer);
  info.resumed = SSL_session_reused(ssl) == 1;
  clear_errors();
  return info;
}

}  // namespace tuza::net::tls
