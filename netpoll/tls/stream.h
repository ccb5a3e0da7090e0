// The TLS layer between a Conn and its socket.
//
// A stream has one SSL object, which OpenSSL allows only one thread at a time to use, and up to two active
// goroutines: a reader and a writer. It has three locks with a fixed order: reading_, then writing_, then
// ssl_mutex_.
//
//   reading_    held by the goroutine that takes ciphertext from the socket, from the system call until OpenSSL
//               has the ciphertext; held while parked
//   writing_    held by the goroutine that gives ciphertext to the socket, from OpenSSL's record until it is
//               sent; held while parked
//   ssl_mutex_  held around each call into OpenSSL, and for its output in wire_;
//               never held while parked
//
// A handshake holds the first two. OpenSSL may produce output (an alert) during a read. The reader must not
// wait for a writer in that case: the writer may be waiting for a peer that does not read, because the peer
// waits for this reader. The reader therefore sends if no goroutine is writing; otherwise it leaves the
// output, with a mark, to the writer, which checks the mark again after releasing the lock.
//
// hold.h describes the handling of goroutines that the end of the runtime abandons.
//
// Thread-safe.
#pragma once

#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/socket/transport.h>
#include <tuza/netpoll/tls.h>
#include <tuza/netpoll/tls/wire.h>
#include <tuza/sched/sync/mutex.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace tuza::net::tls {

// One end of a connection: server or client.
class Side {
 public:
  virtual ~Side() = default;
  struct Begun {
    Owner<SSL> ssl;
    std::shared_ptr<const void> kept;  // objects that the SSL object's callbacks refer to
  };
  // Makes the SSL object for a connection whose handshake begins. Does not park.
  virtual Result<Begun> begin() = 0;
  [[nodiscard]] virtual bool is_server() const = 0;
  [[nodiscard]] virtual std::chrono::milliseconds handshake_timeout() const = 0;
  // The peer's name in errors.
  [[nodiscard]] virtual std::string peer() const = 0;
};

class Stream final : public Transport {
 public:
  // `descriptor` must outlive this object.
  Stream(Descriptor& descriptor, std::shared_ptr<Side> side)
      : descriptor_(descriptor), side_(std::move(side)) {}

  Result<std::size_t> read(std::span<std::byte> into, LazyBuffer* lazy, const Context* ctx) override;
  Result<void> write_all(std::span<struct iovec> pieces, const Context* ctx, bool last) override;
  Result<std::size_t> try_write(std::span<const std::byte> data) override;
  Result<void> handshake(const Context* ctx) override { return handshake(For::kItself, ctx); }
  std::optional<TlsInfo> tls_info() override;
  Result<void> close_write() override;
  void farewell() override;
  void aborting() override { aborted_.store(true, std::memory_order_relaxed); }
  void closing() override;
  bool may_hold_data() override;

 private:
  // Result of a call into OpenSSL.
  struct Outcome {
    int status = 0;  // SSL_ERROR_*
    std::error_code code{};
  };
  template <class Call>
  Outcome call(Call ssl_call) TUZA_REQUIRES(ssl_mutex_);
  Error fail(const Outcome& outcome, std::string_view op) TUZA_REQUIRES(ssl_mutex_);

  // The call that needs a handshake: its deadline applies. kItself: reads and writes have their own.
  enum class For : std::uint8_t { kItself, kRead, kWrite };
  Result<void> handshake(For caller, const Context* ctx);
  [[nodiscard]] Result<void> may_shake(For caller, const Context* ctx, TimePoint begun);
  [[nodiscard]] bool try_lock_both() TUZA_TRY_ACQUIRE(true, reading_, writing_);
  Result<void> shake_hands(const Context* ctx) TUZA_REQUIRES(reading_, writing_);
  Result<void> exchange_flights(const Context& ctx) TUZA_REQUIRES(reading_, writing_);
  Result<void> begin() TUZA_REQUIRES(reading_, writing_);
  Outcome next_flight(Refill& refill) TUZA_REQUIRES(reading_, writing_);
  Result<void> read_flight(Refill& refill, const Context& ctx) TUZA_REQUIRES(reading_, writing_);
  Result<void> read_opening(Refill& refill, const Context& ctx) TUZA_REQUIRES(reading_, writing_);

  Result<void> wait_for_room(std::chrono::milliseconds& pause, const Context* ctx) TUZA_REQUIRES(reading_);
  void outlast_answer(TimePoint by) TUZA_REQUIRES(reading_);
  Result<std::size_t> take_plaintext(std::span<std::byte> into, Refill& refill, bool& wants_more,
                                     bool& wants_room) TUZA_REQUIRES(reading_);
  Result<std::size_t> read_locked(std::span<std::byte> into, LazyBuffer* lazy, const Context* ctx)
      TUZA_REQUIRES(reading_);

  Result<void> encrypt(std::span<const std::byte> data, const Context* ctx) TUZA_REQUIRES(writing_);
  Result<int> try_to_encrypt(std::span<const std::byte> data) TUZA_REQUIRES(writing_);
  Result<void> read_message(std::chrono::milliseconds& pause, const Context* ctx) TUZA_REQUIRES(writing_);
  Result<void> write_locked(std::span<struct iovec> pieces, const Context* ctx, bool last)
      TUZA_REQUIRES(writing_);
  Result<void> send_out(const Context* ctx) TUZA_REQUIRES(writing_);

  // These do not park.
  void send_without_waiting() TUZA_REQUIRES(writing_, ssl_mutex_);
  void say_goodbye() TUZA_REQUIRES(writing_, ssl_mutex_);

  // ssl_ is set once, by a holder of reading_ and writing_, who may ask without ssl_mutex_.
  [[nodiscard]] bool begun() const TUZA_REQUIRES(reading_, writing_) TUZA_NO_THREAD_SAFETY_ANALYSIS {
    return ssl_ != nullptr;
  }
  // The address only, for Sending.
  Queue& out() TUZA_NO_THREAD_SAFETY_ANALYSIS { return wire_.out; }

  void send_leftovers();
  void check_mark();
  [[nodiscard]] bool open() const { return state_.load(std::memory_order_acquire) == State::kOpen; }

  enum class State : std::uint8_t {
    kNew,     // no handshake yet, or an incomplete one
    kOpen,    // handshake complete; broken_ may still be set
    kFailed,  // handshake failed: broken_ holds the error
  };

  Descriptor& descriptor_;
  std::atomic<State> state_{State::kNew};  // changed with reading_ and writing_ held
  bool may_have_plaintext_ TUZA_GUARDED_BY(reading_) = false;
  bool tickets_held_ TUZA_GUARDED_BY(reading_) = false;  // tickets may wait in wire_.out
  bool goodbye_said_ TUZA_GUARDED_BY(writing_) = false;  // close_notify sent, or in wire_.out
  std::atomic<bool> aborted_{false};                     // no goodbye is sent; orders nothing
  std::atomic<std::uint32_t> leftovers_{0};              // not 0: a reader has left output in wire_.out
  std::optional<TimePoint> shaken_by_ TUZA_GUARDED_BY(reading_);  // time limit of a handshake in progress
  Mutex reading_, writing_, ssl_mutex_;
  std::shared_ptr<Side> side_;
  std::shared_ptr<const void> kept_ TUZA_GUARDED_BY(ssl_mutex_);
  Wire wire_ TUZA_GUARDED_BY(ssl_mutex_);  // bytes in `out` do not change under writing_
  std::unique_ptr<const Error> broken_ TUZA_GUARDED_BY(ssl_mutex_);  // if set, all reads and writes fail
  Owner<SSL> ssl_ TUZA_GUARDED_BY(ssl_mutex_);                       // destroyed before wire_
};

}  // namespace tuza::net::tls
