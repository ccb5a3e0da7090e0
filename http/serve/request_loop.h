// One connection, from its first request to its last: the loop that HTTP/1.1 is.
//
//   read a head -> frame it -> run the handler -> finish the response -> skip what is left of the body
//       ^                                                                    |
//       `-- flush what is to be sent, wait for bytes <---- keep alive -------'
//
// Responses collect in ExchangeBuffers::out and leave when nothing more can be done without new bytes: those of
// pipelined requests in one write. Bad input of every kind ends in one place, refuse().
//
// Thread-unsafe: belongs to the connection's goroutine. All waiting parks.
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

  // Serves requests until the connection is to be closed.
  void serve();

  // -- For Request and ResponseWriter, while a handler runs.
  [[nodiscard]] ExchangeBuffers& buffers() { return *buffers_; }
  [[nodiscard]] net::Conn& conn() { return session_.conn(); }
  [[nodiscard]] std::string_view remote();
  Result<std::size_t> read_body(std::span<std::byte> into);
  Result<std::string_view> pull_body();

  // Forgets status, fields and body that were set but not sent; close() remains.
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
  // The response in progress; between requests, the one there would be to bad input.
  struct Response {
    int status = 200;
    bool head_sent = false;  // its head is in `out`, at least
    bool chunked = false;
    bool ends_with_connection = false;  // neither chunked nor with a length: for HTTP/1.0
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
    std::int64_t started_ns = 0;   // when the handler first had to wait for it
    net::TimePoint deadline = net::kNoDeadline;  // beside the one that follows from the minimum rate
    std::string_view slice;                      // data of a chunk that was decoded but not taken
    std::optional<BadRequest> error;
  };

  // net::LazyBuffer
  std::span<std::byte> take() override;
  void give_back() override;

  bool read_head();
  bool wait_for_bytes();
  Result<std::size_t> read_idle();
  void count_failed_read(const Error& error);
  bool last_look();
  std::optional<BadRequest> begin_request();
  void run_handler();
  bool finish_request();
  bool skip_body();
  void refuse(const BadRequest& bad);
  void cut_off();
  void linger();
  bool flush(bool last = false);  // `last`: nothing will be sent after it

  Result<std::size_t> fail_body(BadRequest bad);
  Result<std::size_t> fail_body(const Error& error);  // of a read
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
  bool head_deadline_set_ = false;  // header_timeout runs
  bool keep_alive_ = true;
  std::string remote_;   // empty: nobody has asked yet
  bool broken_ = false;  // a write has failed: nothing more can be sent
};

}  // namespace tuza::http
