// The HTTP/1.1 request loop of one connection, from its first request to its last.
//
//   read a head -> frame it -> run the handler -> finish the response -> skip the rest of the body
//       ^                                                                    |
//       `-- flush pending output, wait for bytes <------ keep alive -----'
//
// Responses collect in ExchangeBuffers::out, and are sent when no more can be done without new bytes: the
// responses to pipelined requests go out in one write. Bad input of every kind ends in one place, refuse().
//
// Thread-unsafe: owned by the connection's goroutine. Every wait parks.
#pragma once

#include <tuza/http/h1/sole_user.h>
#include <tuza/http/handler.h>
#include <tuza/http/options.h>
#include <tuza/http/serve/exchange.h>
#include <tuza/http/serve/head_limits.h>
#include <tuza/http/serve/refusal.h>
#include <tuza/http/server_stats.h>
#include <tuza/http/wire/body_reader.h>
#include <tuza/http/wire/limits.h>
#include <tuza/netpoll/peer_watch.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/serve.h>
#include <tuza/sched/rt/base/relaxed.h>
#include <tuza/sched/rt/report/activity.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tuza::http {

class RequestLoop final : public Exchange {
 public:
  RequestLoop(net::Session& session, const Handler& handler, const ServerOptions& options,
              ServerCounters& counters, BodyBudget& bodies)
      : Exchange(&bodies),
        session_(session),
        handler_(handler),
        options_(options),
        limits_(head_limits(options)),
        counters_(counters) {
    if (options_.connection_age_max.count() > 0) begin_life();
  }
  RequestLoop(const RequestLoop&) = delete;
  RequestLoop& operator=(const RequestLoop&) = delete;
  ~RequestLoop();

  // Serves requests until the connection should be closed.
  void serve();

  // -- Exchange, for Request and ResponseWriter while a handler runs.
  Result<std::size_t> read_body(std::span<std::byte> into, const Context* ctx) override;
  [[nodiscard]] std::string_view remote() override;
  [[nodiscard]] Result<net::Endpoint> remote_endpoint() override { return conn().remote_endpoint(); }
  [[nodiscard]] bool body_ended() override { return body_.reader.complete(); }
  [[nodiscard]] bool separate_directions() override;
  [[nodiscard]] std::optional<net::TlsInfo> tls_info() override { return conn().tls_info(); }

 private:
  // How the body of the response in progress ends; set by start().
  struct Framing {
    bool chunked = false;
    bool ends_with_connection = false;  // neither chunked nor with a length: HTTP/1.0
  };
  // The body of the request in progress.
  struct Body {
    BodyReader reader;
    std::uint64_t received = 0;
    bool continue_wanted = false;  // the client waits for "100 Continue" before it sends the body
    std::int64_t waited_ns = 0;    // for the body, so far
    net::TimePoint deadline = net::kNoDeadline;  // in addition to the deadline from the minimum rate
    std::optional<BadRequest> error;
    // Another goroutine may read the body than writes the response: all this is the reader's.
    bool separate = false;
  };

  // Maximum size of an unwanted body that is read in order to keep the connection.
  static constexpr std::uint64_t kSkippedBodyMax = 256 << 10;

  class InHandler;
  class BodyWait;
  [[nodiscard]] net::Conn& conn() { return session_.conn(); }

  // Exchange
  Result<void> send_interim_head(int status, std::string_view lines, const Context* ctx) override;
  void start(const std::optional<std::uint64_t>& length) override;
  Result<void> send(std::string_view data, const Context* ctx) override;
  Result<void> send_file(net::FileSlice& slice, const Context* ctx) override;
  net::Spliced splice_from(net::Conn& from, std::uint64_t most, const Context& ctx) override;
  net::Spliced splice_to(net::Conn& to, std::uint64_t most, const Context& ctx) override;
  Result<void> send_all(const Context* ctx) override;
  Context make_context() override;
  [[nodiscard]] Context server_shutdown() override { return session_.shutdown_notice(); }
  Result<HijackedStream> hand_over() override;
  [[nodiscard]] bool broken() const override { return broken_; }
  [[nodiscard]] int unreadable_status() const override { return body_.error ? body_.error->status : 0; }
  void refuse_body(const BadRequest& bad) override { (void)fail_body(bad); }
  void accept_body() override { body_.error.reset(); }
  void thrown() override { ServerCounters::add(counters_.handlers_thrown); }

  void end_context();
  void begin_life();
  [[nodiscard]] bool is_last_request();
  bool read_head();
  bool drop_empty_lines() {
    // Most requests begin with their first byte.
    const std::string_view unread = buffers_->input.unread();
    return (unread.empty() || unread.front() <= '\r') && drop_line_ends();
  }
  bool drop_line_ends();
  bool wait_for_bytes();
  Result<std::size_t> read_idle();
  Result<std::size_t> receive();
  void count_failed_read(const Error& error);
  bool final_check();
  std::optional<BadRequest> begin_request();
  void run_handler();
  static std::size_t describe(const void* loop, rt::ReadMemory read, std::span<char> into);
  bool finish_request();
  bool skip_body();
  void refuse(const BadRequest& bad);
  void refuse_plain_http(bool to_head);
  void report_refused(const BadRequest& bad, std::string_view line);
  [[nodiscard]] std::chrono::milliseconds linger_time() const;
  void cut_off();
  void linger();
  bool something_may_be_lost();
  bool flush(bool last = false, const Context* ctx = nullptr);  // `last`: nothing is sent afterwards

  Result<std::size_t> fail_body(BadRequest bad);
  Result<std::size_t> fail_body(const Error& error);  // for an error of a read
  Result<std::size_t> read_for_body(std::span<std::byte> into, const Context* ctx);
  void received_of_body(std::uint64_t bytes);
  Result<std::size_t> take_from_body(std::span<std::byte> into, const Context* ctx);
  bool send_before_body();

  void append_head(const std::optional<std::uint64_t>& length);
  void append_chunk(std::string_view data);
  void end_chunks();
  void give_held_back();
  void finish_response();
  Result<void> send_large(std::string_view body, std::string_view end, const Context* ctx);
  bool sent(const Result<void>& result);
  [[nodiscard]] Result<void> write_result(bool written, const Context* ctx) const;

  // By request_timeout.
  [[nodiscard]] net::TimePoint request_ends() const;
  // Until when the handler's calls without a context wait.
  [[nodiscard]] net::TimePoint patience() const;
  // Before what is written with `ctx`.
  void limit_writes(const Context* ctx);

  net::Session& session_;
  const Handler& handler_;
  const ServerOptions& options_;
  const HeadLimits limits_;
  ServerCounters& counters_;
  // Exchange::buffers_ is null while the connection is idle.
  std::optional<net::PeerWatch> watch_;  // if the handler has asked for its context
  std::int64_t request_began_ns_ = 0;    // if there is a request_timeout
  Framing framing_;
  Body body_;
  // By that goroutine, to its end (release, received_of_body()): the writer may look at body_ (acquire, start()).
  std::atomic<bool> body_read_ = false;
  std::size_t requests_ = 0;        // so far, if they are limited
  std::int64_t ends_ns_ = 0;        // of the connection's life; 0: no limit
  bool head_begun_ = false;         // the parser is in the middle of a head
  bool after_cr_ = false;           // of an empty line in front of a head, whose line feed has not arrived
  bool head_deadline_set_ = false;  // header_timeout is running
  bool keep_alive_ = true;
  std::string remote_;  // empty: not requested yet
  bool writes_limited_ = false;
  bool broken_ = false;  // a write has failed: nothing more can be sent
  SoleWriter writer_;
  SoleReader reader_;

  // While a handler runs: its request, for reports. A signal handler on this thread reads it, and dumps.
  rt::Relaxed<const ExchangeBuffers*> in_handler_{nullptr};
  const rt::ActivityScope announced_{&RequestLoop::describe, this};
};

}  // namespace tuza::http
