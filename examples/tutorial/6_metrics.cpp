// Step 6: goroutines with names, for the dumps and metrics of the admin address.
#include <tuza/framework/app.h>

#include "guest.h"
#include "handlers.h"

int main(int argc, char** argv) {
  tuza::App app("chat");
  const auto address = app.setting("chat.listen", "127.0.0.1:7000", "Where guests connect over TCP");
  const auto idle =
      app.setting("chat.idle_timeout", std::chrono::minutes(10), "Between two lines of a guest");
  //! [settings]
  const auto certificate = app.setting("chat.certificate", "", "PEM file for guests over TLS; empty: no TLS");
  const auto key = app.setting("chat.key", "", "Its private key, PEM");
  std::shared_ptr<tuza::net::TlsServer> tls;
  certificate.check([&](const std::string& file) -> tuza::Result<void> {
    if (file.empty()) return {};
    auto loaded = tuza::net::TlsServer::load({.certificates = {{file, *key}}});
    if (!loaded) return std::unexpected(loaded.error());  // names the file, and what is wrong with it
    tls = *loaded;
    return {};
  });
  //! [settings]
  Room room;
  return app.run(argc, argv, [&]() -> tuza::Result<void> {
    app.router().handle("POST /say/{name}", [&](Request& req, ResponseWriter& res) { say(req, res, room); });
    app.router().handle("GET /lines/{name}",
                        [&](Request& req, ResponseWriter& res) { lines(req, res, room); });

    auto listener = tuza::net::listen("tcp", *address);
    if (!listener) return std::unexpected(tuza::errorf("{}: {}", address.place(), listener.error()));
    //! [tls]
    if (tls != nullptr) listener->use_tls(tls);
    //! [tls]
    //! [names]
    tuza::go({.name = "room"}, [&room] { room.run(); });
    tuza::go({.name = "tcp"}, [&, listener = std::move(*listener)]() mutable {
      (void)tuza::net::serve(listener,
                             [&](tuza::net::Conn& conn) { serve_guest(conn, room, {.idle = *idle}); });
    });
    //! [names]
    return {};
  });
}
