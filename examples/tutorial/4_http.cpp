// Step 4: the same room, over HTTP as well, as a service with settings, logs and a graceful end.
#include <tuza/framework/app.h>

#include "guest.h"
#include "handlers.h"

//! [main]
int main(int argc, char** argv) {
  tuza::App app("chat");
  const auto address = app.setting("chat.listen", "127.0.0.1:7000", "Where guests connect over TCP");
  const auto idle =
      app.setting("chat.idle_timeout", std::chrono::minutes(10), "Between two lines of a guest");
  Room room;
  return app.run(argc, argv, [&]() -> tuza::Result<void> {
    app.router().handle("POST /say/{name}", [&](Request& req, ResponseWriter& res) { say(req, res, room); });
    app.router().handle("GET /lines/{name}",
                        [&](Request& req, ResponseWriter& res) { lines(req, res, room); });

    auto listener = tuza::net::listen("tcp", *address);
    if (!listener) return std::unexpected(tuza::errorf("{}: {}", address.place(), listener.error()));
    tuza::go([&room] { room.run(); });
    tuza::go([&, listener = std::move(*listener)]() mutable {
      (void)tuza::net::serve(listener,
                             [&](tuza::net::Conn& conn) { serve_guest(conn, room, {.idle = *idle}); });
    });
    return {};
  });
}
//! [main]
