// The room over HTTP.
#pragma once

#include <tuza/http.h>

#include "room.h"

using tuza::http::Request;
using tuza::http::ResponseWriter;

//! [handlers]
// POST /say/{name}: the body is the line.
inline void say(Request& req, ResponseWriter& res, Room& room) {
  const tuza::Result<std::string_view> body = req.body();
  if (!body) return;  // too large, too slow, malformed: the server answers
  if (body->empty() || body->contains('\n')) return res.error(400, "one line, please\n");
  room.say(req.path_value<std::string>("name") + ": " + std::string(*body) + "\n");
  res.no_content();
}

// GET /lines/{name}: joins, and sends lines as they come, for ten seconds.
inline void lines(Request& req, ResponseWriter& res, Room& room) {
  const auto guest = std::make_shared<Guest>(req.path_value<std::string>("name"));
  room.join(guest);
  const auto [ctx, cancel] = tuza::with_timeout(tuza::Context::background(), std::chrono::seconds(10));
  res.set_header("Content-Type", "text/plain; charset=utf-8");
  for (;;) {
    const tuza::Result<std::optional<std::string>> line = guest->outbox.recv(ctx);
    if (!line || !*line || !res.write(**line) || !res.flush()) break;
  }
  room.leave(guest);
}
//! [handlers]
