// The sending half of a WebSocket: writes whole frames, one after another, from any number of goroutines.
//
// A write that fails may have sent a part of a frame: nothing can follow, and the connection is closed. Only a writer that
// gives up while it waits for another one leaves the connection as it was.
//
// Pongs never wait behind a writer whose peer does not read: the reader leaves the payload here, and the holder of
// the lock sends it. A newer ping replaces one that has not been answered (RFC 6455 5.5.3), so pings cannot pile up. Nor does
// anybody wait for a pong: it is sent as far as there is room, and a goroutine sends its rest:
//
//   reader or writer:  try_write(pong) -> all sent, or rest_ -> goroutine: waits for room, sends rest_
//                                                       `----> or the next writer, if it comes sooner: rest_ first
//
// Thread-safe.
#pragma once

#include <tuza/http/websocket/deflater.h>
#include <tuza/http/websocket/frame.h>
#include <tuza/http/websocket/mask_keys.h>
#include <tuza/netpoll/conn.h>
#include <tuza/sched/detail/thread_annotations.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/wait_group.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tuza::http::websocket {

class Writer {
 public:
  // `ours`: a client's frames are masked. That takes a copy: for messages beyond 1 KiB through 16 KiB of memory, which the first
  // of them allocates. `ending`: its end ends the sending of pongs; before the destructor, which waits for it.
  Writer(net::Conn& conn, Role ours, const Context& ending);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Compresses messages of at least `bytes_min` from now on. Before the first message.
  void use_deflate(int window_bits, bool takeover, int level, std::size_t bytes_min);

  // Sends a message, kText or kBinary, as one frame; compressed and large, as several. Errc::kClosed after a close frame,
  // or a failed write. Parks.
  [[nodiscard]] Result<void> message(const Context& ctx, Opcode opcode, std::string_view data)
      TUZA_NO_THREAD_SAFETY_ANALYSIS;  // does not see through lock(ctx)
  // Answers a ping, soon. Does not park. The connection's write timeout limits how long the peer may read nothing.
  void pong(std::string_view payload);
  // Sends a ping, unless a message is being sent. False: it has not been sent. Parks.
  bool ping(const Context& ctx);
  // Nothing is sent from now on: the peer has gone. Calls that already send go on.
  void end() { ended_.store(true, std::memory_order_relaxed); }
  // Whether a write has failed because the peer read nothing for too long, so that the connection is closed.
  [[nodiscard]] bool stuck() const { return stuck_.load(std::memory_order_relaxed); }
  // Sends a close frame; Assembler::kNoCode for one without a code. Errc::kClosed if there has been one. Parks.
  [[nodiscard]] Result<void> close(const Context& ctx, int code,
                                   std::string_view reason) TUZA_NO_THREAD_SAFETY_ANALYSIS;

 private:
  enum class State : std::uint8_t {
    kOpen,
    kClosed,  // a close frame has been sent: nothing may follow
    kBroken,  // a write has failed: nothing can follow
  };
  struct Compression {
    Compression(int window_bits, bool takeover, int level, std::size_t at_least)
        : deflater(window_bits, takeover, level), bytes_min(at_least) {}
    Deflater deflater;
    std::size_t bytes_min;
    std::unique_ptr<char[]> out;  // made with the first message
  };
  struct Masking {
    MaskKeys keys;
    std::unique_ptr<char[]> out;  // made with the first large message
  };

  Result<void> send_message(const Context& ctx, Opcode opcode, std::string_view data) TUZA_REQUIRES(mutex_);
  Result<void> send_compressed(const Context& ctx, Opcode opcode, std::string_view data)
      TUZA_REQUIRES(mutex_);
  Result<void> send(const Context& ctx, OutHead head, std::string_view data) TUZA_REQUIRES(mutex_);
  template <std::size_t kBytesMax>
  Result<void> send_copied(const Context& ctx, OutHead head, std::string_view data) TUZA_REQUIRES(mutex_);
  Result<void> send_plain(const Context& ctx, OutHead head, std::string_view data) TUZA_REQUIRES(mutex_);
  Result<void> send_masked(const Context& ctx, OutHead head, std::string_view data) TUZA_REQUIRES(mutex_);
  Result<void> send_rest(const Context& ctx) TUZA_REQUIRES(mutex_);
  Result<bool> begin_pong(std::string_view payload) TUZA_REQUIRES(mutex_);
  bool begin_waiting_pong() TUZA_REQUIRES(mutex_);
  void send_rest_elsewhere() TUZA_REQUIRES(mutex_);
  void finish_rest() TUZA_NO_THREAD_SAFETY_ANALYSIS;  // as message()
  void break_off(const Error& error, const Context& ctx, bool callers) TUZA_REQUIRES(mutex_);
  bool pong_waits();
  void serve_pongs();
  static Error closed() { return {Errc::kClosed, "websocket write"}; }

  net::Conn& conn_;
  const Context ending_;
  std::atomic<bool> ended_{false};  // set by the reader; relaxed: a write that misses it fails at the socket

  // Relaxed: it is set before conn_.close(), and a reader looks at it when it has seen the connection closed.
  std::atomic<bool> stuck_{false};

  Mutex mutex_;  // held while a frame is sent
  State state_ TUZA_GUARDED_BY(mutex_) = State::kOpen;
  std::optional<Compression> compression_ TUZA_GUARDED_BY(mutex_);
  const std::unique_ptr<Masking> masking_;    // null for a server; what it holds is guarded by mutex_
  std::string rest_ TUZA_GUARDED_BY(mutex_);  // of a pong
  bool rest_is_sent_elsewhere_ TUZA_GUARDED_BY(mutex_) = false;

  Mutex pong_mutex_;  // never held while something parks. Taken after mutex_, or alone
  bool pong_waits_ TUZA_GUARDED_BY(pong_mutex_) = false;
  std::uint8_t pong_bytes_ TUZA_GUARDED_BY(pong_mutex_) = 0;
  std::array<char, kControlBytesMax> pong_ TUZA_GUARDED_BY(pong_mutex_);

  WaitGroup sending_rest_;
};

}  // namespace tuza::http::websocket
