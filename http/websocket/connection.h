// What is behind websocket::Connection: reads messages, answers control frames, and ends the connection.
//
//   reader:  HijackedStream's input -> Assembler -> message | Writer (pong, close)
//   others:  Writer <- messages; <- Liveness (timer); <- the server's shutdown
//
// The timer and the shutdown call from goroutines of their own, which may begin while this ends: Lifeline.
#pragma once

#include <tuza/http/client.h>
#include <tuza/http/hijacked_stream.h>
#include <tuza/http/websocket.h>
#include <tuza/http/websocket/assembler.h>
#include <tuza/http/websocket/handshake.h>
#include <tuza/http/websocket/inflater.h>
#include <tuza/http/websocket/liveness.h>
#include <tuza/http/websocket/writer.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/time/after_func.h>

#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace tuza::http::websocket {

class Connection::Impl {
 public:
  // Of `options`, only the times and limits. `stream` stays valid, as that of a handler.
  Impl(Role ours, HijackedStream stream, const Agreement& agreement, const Options& options,
       BodyBudget* budget);
  // A client's, whose stream is that of `response`.
  Impl(ClientResponse response, HijackedStream stream, const Agreement& agreement, const Options& options);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  // Parks.
  ~Impl();

  // After the handshake: begins to ping, and to watch for the end of the server.
  void begin(const Context& shutdown);

  [[nodiscard]] Result<Message> read(const Context& ctx);
  [[nodiscard]] Result<void> write(const Context& ctx, const Message& message);
  Result<void> close(const Context& ctx, int code, std::string_view reason);

  [[nodiscard]] const std::optional<CloseStatus>& peer_close() const { return peer_close_; }
  [[nodiscard]] std::string_view subprotocol() const { return subprotocol_; }
  [[nodiscard]] bool compressed() const { return compressed_; }

 private:
  // Shared with the functions of the timer and of the shutdown; `impl` is null once this has ended.
  struct Lifeline {
    Mutex mutex;
    Impl* impl TUZA_GUARDED_BY(mutex) = nullptr;
    CancellableContext ending =
        with_cancel(Context::background());  // ends pings and pongs that hold the end up
  };

  Inflater* make_inflater(DeflateWindow window) { return &inflater_.emplace(window.bits, window.takeover); }
  Result<Assembler::Step> step(const Context& ctx);
  Result<Assembler::Step> read_more(const Context& ctx);
  Result<Assembler::Step> read_into(std::span<char> room, const Context& ctx);
  Result<std::size_t> wait_for(auto read);
  Result<Assembler::Step> nothing_came(const Context& ctx, const Result<std::size_t>& n);
  Error why_nothing(const Result<std::size_t>& n);
  // A close frame, or a violation.
  std::unexpected<Error> end_by(const Assembler::Step& last);
  Error finish(Error error);
  void leave_lifeline() TUZA_NO_THREAD_SAFETY_ANALYSIS;  // does not see through try_lock()
  void tick();
  void begin_grace();
  void say_goodbye();
  Result<void> close_in_time(int code, std::string_view reason = {});
  void close_or_break_off(int code, std::string_view reason = {});
  void wait_for_server();

  std::optional<ClientResponse> response_;  // a client's; owns the connection, and so ends last
  net::Conn& conn_;
  Input& input_;
  const std::chrono::milliseconds ping_interval_, pong_timeout_, close_timeout_, shutdown_grace_;
  const std::string subprotocol_;
  const bool compressed_;
  std::optional<Inflater> inflater_;

  // The reader's.
  Assembler assembler_;
  std::optional<Error> ended_;  // nothing more can be read
  std::optional<CloseStatus> peer_close_;

  // Own synchronisation.
  const std::shared_ptr<Lifeline> lifeline_ = std::make_shared<Lifeline>();
  Writer writer_;
  Liveness liveness_;

  DelayedCall pinging_;
  std::optional<WhenDone> shutdown_;
  DelayedCall goodbye_;  // written by the function of the shutdown, which holds Lifeline::mutex
  int exceptions_ = 0;   // in flight when this began
};

}  // namespace tuza::http::websocket
