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

#include <tuza/http/handler.h>
#include <tuza/http/options.h>
#include <tuza/http/serve/exchange_buffers.h>
#include <tuza/http/server_stats.h>
#include <tuza/http/wire/bad_request.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/serve.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace tuza::http {

class RequestLoop final : private net::LazyBuffer {
 public:
  RequestLoop(net::Session& session, const Handler& handler, const ServerOptions& options,
              ServerCounters& counters)
      : session_(session), handler_(handler), options_(options), counters_(counters) {}
  RequestLoop(const RequestLoop&) = delete;
  RequestLoop& operator=(const RequestLoop&) = delete;
  ~RequestLoop();

  // Serves requests until the connection should be closed.
  void serve();

  // -- For Request and ResponseWriter, while a handler runs.
  [[nodiscard]] ExchangeBuffers& buffers() { return *buffers_; }
  [[nodiscard]] net::Conn& conn() { return session_.conn(); }
  [[nodiscard]] std::string_view remote();
  Result<std::size_t> read_body(std::span<std::byte> into);
  Result<std::string_view> pull_body();

  // Discards status, fields and body that were set but not sent; close() stays in effect.
  void drop_prepared_response();
  void set_status(int code);
  void add_header(std::string_view name, std::string_view value);
  void close_after_response();
  void send_whole(std::string_view content_type, std::string_view body);
  Result<void> write_body(std::string_view data);
  Result<void> flush_response();
  [[nodiscard]] bool head_sent() const { return response_.head_sent; }
  [[nodiscard]] int status_code() const;
  [[nodiscard]] std::uint64_t bytes_written() const;

 private:
  // The response in progress; between requests, the response to bad input, if it becomes necessary.
  struct Response {
    int status = 200;
    bool head_sent = false;  // the head is at least in `out`
    bool chunked = false;
    bool ends_with_connection = false;  // neither chunked nor with a length: HTTP/1.0
    bool finished = false;
    bool has_content_type = false;
    bool has_date = false;
    bool has_server = false;
    bool close = false;
    std::optional<std::uint64_t> declared_length;  // the handler has set Content-Length
    std::uint64_t written = 0;                     // bytes of body
  };
  // The body of the request in progress.
  struct Body {
    std::uint64_t remaining = 0;  // of a body with a Content-Length
    std::uint64_t received = 0;
    bool chunked = false;
    bool complete = true;
    bool continue_wanted = false;  // the client waits for "100 Continue" before it sends the body
    std::int64_t started_ns = 0;   // when the handler first had to wait for the body
    net::TimePoint deadline = net::kNoDeadline;  // in addition to the deadline from the minimum rate
    std::string_view slice;                      // decoded data of a chunk, not yet taken
    std::optional<BadRequest> error;
  };

  // net::LazyBuffer
  std::span<std::byte> take() override;
  void give_back() override;

  bool read_head();
  bool wait_for_bytes();
  Result<std::size_t> read_idle();
  void count_failed_read(const Error& error);
  bool final_check();
  std::optional<BadRequest> begin_request();
  void run_handler();
  bool finish_request();
  bool skip_body();
  void refuse(const BadRequest& bad);
  void cut_off();
  void linger();
  bool flush(bool last = false);  // `last`: nothing is sent afterwards

  Result<std::size_t> fail_body(BadRequest bad);
  Result<std::size_t> fail_body(const Error& error);  // for an error of a read
  Result<std::size_t> fill_body_input();
  Result<std::size_t> read_known_length(std::span<std::byte> into);
  Result<std::size_t> read_chunked(std::span<std::byte> into);
  void prepare_to_wait_for_body();

  void append_head(std::optional<std::uint64_t> length);
  void begin_stream();
  void append_chunk(std::string_view data);
  void finish_response();
  [[nodiscard]] bool body_allowed() const;
  Result<void> send_large(std::string_view body, std::string_view end = {});
  bool sent(const Result<void>& result);

  net::Session& session_;
  const Handler& handler_;
  const ServerOptions& options_;
  ServerCounters& counters_;
  ExchangeBuffers* buffers_ = nullptr;  // null while idle
  Response response_;
  Body body_;
  bool head_begun_ = false;         // the parser is in the middle of a head
  bool head_deadline_set_ = false;  // header_timeout is running
  bool keep_alive_ = true;
  std::string remote_;   // empty: not requested yet
  bool broken_ = false;  // a write has failed: nothing more can be sent
};

}  // namespace tuza::http
