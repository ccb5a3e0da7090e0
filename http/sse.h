// Public header, part of <tuza/http.h>.
//
// Server-sent events (text/event-stream): a response that goes on, for a page's EventSource.
//
//     router.handle("GET /events", [](Request& req, ResponseWriter& res) {
//       auto stream = http::sse(req, res);
//       while (auto news = next_news(stream.context())) {         // ends when the client has gone, or at shutdown
//         if (!stream.send({.data = news->text, .id = news->id})) return;
//       }
//     });
//
// A browser connects again by itself when a stream ends, and says which event was its last: last_event_id().
//
// Comments keep a stream alive on which nothing is sent, for proxies and in order to notice clients that are gone; a timer
// sends them, and no goroutine waits. A client that reads nothing is cut off after write_timeout.
//
// Thread-safe: several goroutines may send. `res` must not be used beside the stream, nor the body of `req` be read. The
// stream must end before its handler.
#pragma once

#include <tuza/sched/detail/language.h>  // first

#include <tuza/http/request.h>
#include <tuza/http/response_writer.h>
#include <tuza/sched/result.h>
#include <tuza/sched/sync/context.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>

namespace tuza::http {

// UTF-8 in all of it.
struct Event {
  std::string_view data;     // of any number of lines
  std::string_view event{};  // the type; empty: "message"
  std::string_view id{};     // empty: none
  // How long a browser waits before it connects again.
  std::optional<std::chrono::milliseconds> retry{};
};

struct EventStreamOptions {
  std::chrono::milliseconds heartbeat{15'000};      // without an event, there is a comment; 0: none
  std::chrono::milliseconds write_timeout{10'000};  // until the connection takes all of one event
};

class EventStream {
 public:
  // As sse().
  EventStream(Request& req, ResponseWriter& res, const EventStreamOptions& options);
  EventStream(const EventStream&) = delete;
  EventStream& operator=(const EventStream&) = delete;
  // Ends the heartbeat. Parks while one is being sent.
  ~EventStream();

  // Sends an event at once. Fails if the client has gone, or if the connection does not take the event within write_timeout; then
  // the stream has ended, as it has if `ctx` ends before that. May be called after context() has ended by a shutdown or a
  // time limit, in order to say goodbye. Throws std::invalid_argument if `event` or `id` has a line end, or `id` a NUL. Parks.
  [[nodiscard]] Result<void> send(const Event& event) { return send(Context::background(), event); }
  [[nodiscard]] Result<void> send(const Context& ctx, const Event& event);

  // Ends when the client has gone, when the stream has failed, when the server begins to shut down, and at the time limits of
  // the request: of timeout(), and ServerOptions::request_timeout.
  [[nodiscard]] const Context& context() const;
  // The id of the last event that the client has seen on an earlier connection; nullopt: it has not said one.
  [[nodiscard]] std::optional<std::string_view> last_event_id() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Begins the response: text/event-stream, not to be stored or held back by proxies. The status is 200 unless it has been
// set. The answer to HEAD has no events: each send() fails. Throws std::invalid_argument if write_timeout is not above 0.
// Parks.
[[nodiscard]] inline EventStream sse(Request& req, ResponseWriter& res,
                                     const EventStreamOptions& options = {}) {
  return {req, res, options};
}

}  // namespace tuza::http
