// Public header, part of <tuza/http.h>.
//
// A response, as its handler writes it.
//
// A response is sent either whole, with a length known to the client:
//
//     res.text("Hello!\n");    res.json(R"({"ok":true})");    res.send("image/png", bytes);
//
// or piece by piece. Written data is held back at first. A body that stays small gets a Content-Length; a
// larger body is streamed in chunks (or unchunked, if the handler has set Content-Length):
//
//     for (const Row& row : rows) { if (!res.write(row.csv())) return; }       // the client is gone
//
// A handler that writes nothing answers 200 with an empty body. The writer is valid until the handler
// returns. Thread-unsafe.
#pragma once

#include <tuza/sched/result.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tuza::http {

class RequestLoop;

class ResponseWriter {
 public:
  explicit ResponseWriter(RequestLoop& loop) : loop_(loop) {}
  ResponseWriter(const ResponseWriter&) = delete;
  ResponseWriter& operator=(const ResponseWriter&) = delete;

  // -- Before the response has begun: once it has, these throw std::logic_error.

  // 200 to 599; 200 if not set.
  void status(int code);
  // Adds a header field. Throws std::invalid_argument if the name is not a token, the value contains a line
  // end or another control character, or the server sets the field itself (Transfer-Encoding, Connection; see
  // close()). Content-Length must be the true length of the body.
  void header(std::string_view name, std::string_view value);
  // The connection is closed after this response.
  void close();

  // -- The body.

  // The whole response; nothing may be written before or after. Throws std::invalid_argument as header()
  // does. Does not park, except to send a large response.
  void send(std::string_view content_type, std::string_view body);
  void text(std::string_view body) { send("text/plain; charset=utf-8", body); }
  void json(std::string_view body) { send("application/json", body); }
  // An error or another status with a short text: "Not Found\n". Replaces a response that was prepared but
  // not sent.
  void error(int code);
  void error(int code, std::string_view text);

  // Writes a part of the body. An error means that the client is gone or too slow; further writes fail too.
  // May park.
  Result<void> write(std::string_view data);
  // Sends everything written so far, and the responses of earlier pipelined requests. Parks.
  Result<void> flush();

  // True if the status line may have been sent: it is too late for status() and header().
  [[nodiscard]] bool head_sent() const;

  // -- For middleware, after the handler has returned.

  // The status that was sent, or that would be sent if the handler returned now. This includes the status of
  // an unreadable request body (400, 408, 413).
  [[nodiscard]] int status_code() const;
  // Bytes of the body so far, without chunk framing; 0 if no body is allowed (HEAD, 304).
  [[nodiscard]] std::uint64_t bytes_written() const;

 private:
  RequestLoop& loop_;
};

}  // namespace tuza::http
