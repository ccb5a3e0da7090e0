// Public header, part of <tuza/http.h>.
//
// A response, as its handler writes it.
//
// Either whole, with a length the client is told:
//
//     res.text("Hello!\n");    res.json(R"({"ok":true})");    res.send("image/png", bytes);
//
// or bit by bit. What is written is kept back at first; a body that stays small gets a Content-Length, a
// larger one is streamed in chunks (or, if the handler has set Content-Length, as it is):
//
//     for (const Row& row : rows) { if (!res.write(row.csv())) return; }       // the client has gone
//
// A handler that writes nothing answers 200 with an empty body. Valid until the handler returns.
// Thread-unsafe.
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

  // -- Before the response has begun: later calls throw std::logic_error.

  // 200 to 599; 200 if not set.
  void status(int code);
  // Adds a header field. Throws std::invalid_argument if the name is no token, the value holds a line end or
  // another control character, or the field is one the server sets itself (Transfer-Encoding, Connection;
  // see close()). Content-Length must be the true length of the body.
  void header(std::string_view name, std::string_view value);
  // The connection will be closed after this response.
  void close();

  // -- The body.

  // The whole response; nothing may be written before or after. Throws std::invalid_argument as header()
  // does. Does not park, except to get rid of a large one.
  void send(std::string_view content_type, std::string_view body);
  void text(std::string_view body) { send("text/plain; charset=utf-8", body); }
  void json(std::string_view body) { send("application/json", body); }
  // An error or another status with a short text: "Not Found\n". Replaces what was prepared but not sent.
  void error(int code);
  void error(int code, std::string_view text);

  // A part of the body. An error: the client has gone or is too slow; further writes fail too. May park.
  Result<void> write(std::string_view data);
  // Sends what has been written so far, and the responses of earlier pipelined requests. Parks.
  Result<void> flush();

  // The status line may have been sent: it is too late for status() and header().
  [[nodiscard]] bool head_sent() const;

  // -- For middleware, when the handler has returned.

  // The status that was sent, or would be if the handler returned now: that of a request body that could not
  // be read (400, 408, 413) included.
  [[nodiscard]] int status_code() const;
  // Bytes of body in it so far, without chunk framing; 0 where there must be none (HEAD, 304).
  [[nodiscard]] std::uint64_t bytes_written() const;

 private:
  RequestLoop& loop_;
};

}  // namespace tuza::http
