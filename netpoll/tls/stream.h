// TLS between a Conn and its socket.
//
// One SSL object, which OpenSSL allows to be used by one thread at a time, and up to two goroutines, one that
// reads and one that writes. Three locks, of which no two orders conflict: reading_, then writing_, then
// ssl_.
//
//   reading_    who takes ciphertext from the socket, from the system call until OpenSSL has it;
//               held while parked
//   writing_    who gives ciphertext to the socket, from OpenSSL's record until it is sent;
//               held while parked
//   ssl_mutex_  around each call into OpenSSL, and what it leaves in wire_;
//               never held while parked
//
// A handshake holds the first two. A reader for whom OpenSSL has produced something (an alert) must not wait
// for a writer, who may wait for a peer that does not read because it waits for this reader: it sends if
// nobody writes, and else leaves it, with a mark, to the writer, who looks at the mark again when it has let
// go.
//
// What the end of the runtime does for goroutines that it leaves behind is in hold.h.
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

// Which end of a connection this is.
class Side {
 public:
  virtual ~Side() = default;
  struct Begun {
    Owner<SSL> ssl;
    std::shared_ptr<const void> kept;  // what the SSL object's callbacks refer to
  };
  // The SSL object of a connection whose handshake begins. Does not park.
  virtual Result<Begun> begin() = 0;
  [[nodiscard]] virtual bool is_server() const = 0;
  [[nodiscard]] virtual std::chrono::milliseconds handshake_timeout() const = 0;
  // Whom errors name.
  [[nodiscard]] virtual std::string peer() const = 0;
};

class Stream final : public Transport {
 public:
  // `descriptor` outlives this.
  Stream(Descriptor& descriptor, std::shared_ptr<Side> side)
      : descriptor_(descriptor), side_(std::move(side)) {}

  Result<std::size_t> read(std::span<std::byte> into, LazyBuffer* lazy, const Context* ctx) override;
  Result<void> write_all(std::span<struct iovec> pieces, const Context* ctx, bool last) override;
  Result<void> handshake(const Context* ctx) override;
  std::optional<TlsInfo> tls_info() override;
  Result<void> close_write() override;
  void farewell() override;
  void aborting() override { aborted_.store(true, std::memory_order_relaxed); }
  void closing() override;

 private:
  // What a call into OpenSSL came to.
  struct Outcome {
    int status = 0;  // SSL_ERROR_*
    std::error_code code{};
  };
  // With ssl_mutex_ held.
  template <class Call>
  Outcome call(Call ssl_call);
  Error fail(const Outcome& outcome, std::string_view op);

  // With reading_ and writing_ held.
  Result<void> shake_hands(const Context* ctx);
  Result<void> exchange_flights(const Context& ctx);
  Result<void> begin();
  Outcome next_flight(Refill& refill);
  Result<void> read_flight(Refill& refill, const Context& ctx);

  // With reading_ held.
  Result<void> wait_for_room(std::chrono::milliseconds& pause, const Context* ctx);
  void outlast_answer(TimePoint by);
  Result<std::size_t> take_plaintext(std::span<std::byte> into, Refill& refill, bool& wants_more,
                                     bool& wants_room);
  Result<std::size_t> read_locked(std::span<std::byte> into, LazyBuffer* lazy, const Context* ctx);

  // With writing_ held.
  Result<void> encrypt(std::span<const std::byte> data, const Context* ctx);
  Result<int> try_to_encrypt(std::span<const std::byte> data);
  Result<void> read_message(std::chrono::milliseconds& pause, const Context* ctx);
  Result<void> write_locked(std::span<struct iovec> pieces, const Context* ctx, bool last);
  Result<void> send_out(const Context* ctx);

  // With writing_ and ssl_mutex_ held. Do not park.
  void send_without_waiting();
  void say_goodbye();

  void send_leftovers();
  void look_at_mark();
  [[nodiscard]] bool open() const { return state_.load(std::memory_order_acquire) == State::kOpen; }

  enum class State : std::uint8_t {
    kNew,     // no handshake, or one that is not complete
    kOpen,    // it is complete; broken_ may still be set
    kFailed,  // it failed: broken_ says why
  };

  Descriptor& descriptor_;
  std::atomic<State> state_{State::kNew};    // changed with reading_ and writing_ held
  bool may_have_plaintext_ = false;          // guarded by reading_
  bool tickets_held_ = false;                // guarded by reading_: wire_.out may have them, for the answer
  bool goodbye_said_ = false;                // guarded by writing_: a close_notify is sent, or in wire_.out
  std::atomic<bool> aborted_{false};         // no goodbye is said; nothing is ordered by it
  std::atomic<std::uint32_t> leftovers_{0};  // not 0: a reader has left something in wire_.out
  std::optional<TimePoint> shaken_by_;       // guarded by reading_: when a handshake that has begun times out
  Mutex reading_, writing_, ssl_mutex_;
  std::shared_ptr<Side> side_;
  std::shared_ptr<const void> kept_;     // guarded by ssl_mutex_
  Wire wire_;                            // guarded by ssl_mutex_; what is in `out` is constant with writing_
  std::unique_ptr<const Error> broken_;  // guarded by ssl_mutex_: nothing can be read or written any more
  Owner<SSL> ssl_;                       // guarded by ssl_mutex_; goes before wire_
};

}  // namespace tuza::net::tls
