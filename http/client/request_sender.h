// Writes a request to a connection: head, body with a length or in chunks, trailers.
//
// Thread-unsafe. Writing parks.
#pragma once

#include <tuza/http/client/state.h>
#include <tuza/netpoll/conn.h>
#include <tuza/sched/result.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace tuza::http {

class RequestSender {
 public:
  // `out`: memory for what is to be sent.
  RequestSender(net::Conn& conn, const Hop& hop, const ClientOptions& options, std::string& out);

  // Whether head and body are small, or the body is none: one write that does not wait for the server to read.
  [[nodiscard]] bool fits_one_write() const;
  // Whether it can go on without the request: all that it still sends is its own. Call before the sending.
  [[nodiscard]] bool let_go_of_request();
  // The source of the request is read beside the response, from now on and no longer. For the goroutine that owns the request.
  void goes_on_beside(bool on) {
    if (request_ != nullptr) request_->being_sent_.on = on;
  }
  // Calls BodySplicer::begins(), if there is one. Parks.
  void begin_body();
  // The head, and the body unless the server is asked first.
  [[nodiscard]] Result<void> send_head(const Context& ctx);
  [[nodiscard]] Result<void> send_body(const Context& ctx);
  // The error of the body's source, which ended send_body().
  [[nodiscard]] const std::optional<Error>& source_error() const { return source_error_; }

 private:
  [[nodiscard]] Result<void> send_from_source(const Context& ctx);
  [[nodiscard]] Result<void> splice_more(const Context& ctx, std::uint64_t& left);
  [[nodiscard]] Result<void> send_piece(const Context& ctx, std::string_view piece);
  std::unexpected<Error> source_failed(Error error);
  void note_sent();
  void append_head(const Hop& hop, const ClientOptions& options);
  void append_body_fields(const Hop& hop);

  net::Conn& conn_;
  ClientRequest* request_;                         // null: let go of
  const std::shared_ptr<const std::string> text_;  // null: there is no body, or it has a source
  const bool with_body_;
  std::string& out_;
  std::optional<Error> source_error_;
};

}  // namespace tuza::http
