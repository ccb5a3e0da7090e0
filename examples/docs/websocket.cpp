// The code on docs/guide/websocket.md.
#include <tuza/http.h>
#include <tuza/http/testing_server.h>
#include <tuza/sync.h>
#include <tuza/time.h>
#include <tuza/tuza.h>

#include <array>
#include <cassert>
#include <chrono>
#include <span>
#include <string>

namespace websocket_page {

using namespace std::chrono_literals;
namespace websocket = tuza::http::websocket;
using tuza::http::Request;
using tuza::http::ResponseWriter;

//! [echo]
void echo(Request& req, ResponseWriter& res) {
  auto socket = websocket::upgrade(req, res);
  if (!socket) return;  // answered: it was no handshake, or one from a foreign page
  while (auto message = socket->read()) {
    if (!socket->write(*message)) return;
  }
}
//! [echo]

tuza::Chan<std::string>& news();
void obey(std::string_view) {}

//! [both]
void feed(Request& req, ResponseWriter& res) {
  auto socket = websocket::upgrade(req, res);
  if (!socket) return;
  auto [ctx, cancel] = tuza::with_cancel(tuza::Context::background());
  tuza::WaitGroup writer;
  writer.go([&] {
    for (;;) {
      const auto line = news().recv(ctx);
      if (!line || !*line || !socket->write_text(ctx, **line)) return;
    }
  });
  while (auto message = socket->read()) obey(message->data);
  cancel();  // the client has gone, or the server shuts down
  writer.wait();
}
//! [both]

void options(Request& req, ResponseWriter& res) {
  //! [options]
  auto socket = websocket::upgrade(req, res,
                                   {.subprotocols = {"chat.v2", "chat.v1"},
                                    .origins = {"https://app.example"},
                                    .message_bytes_max = 64 << 10,
                                    .ping_interval = 20s,
                                    .deflate = {.enabled = true}});
  //! [options]
  (void)socket;
}

void show(std::string_view) {}

//! [dial]
// Follows a feed until the context ends.
tuza::Result<void> follow(const tuza::Context& ctx, tuza::http::Client& client, std::string_view url) {
  for (;;) {
    auto socket = websocket::dial(ctx, client, url, {.headers = {{"Authorization", "Bearer 1"}}});
    if (!socket && tuza::http::status_of(socket.error()) == 401) return std::unexpected(socket.error());
    while (socket) {
      const auto message = socket->read(ctx);
      if (!message) break;  // the server has closed, or has gone
      show(message->data);
    }
    TUZA_TRY(tuza::sleep_for(ctx, 1s));
  }
}
//! [dial]

void try_echo() {
  //! [test]
  tuza::http::testing::Server server(echo);
  auto socket = websocket::dial(tuza::Context::background(), server.client(), server.url());
  assert(socket->write_text("hello"));
  assert(socket->read()->data == "hello");
  //! [test]
}

//! [hijack]
void other_protocol(Request& req, ResponseWriter& res) {
  auto stream = res.hijack(101);
  if (!stream) return;  // the client has gone
  if (!stream->write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"))
    return;
  std::array<std::byte, 4096> piece;
  while (const auto n = stream->read(req.until_shutdown(), piece)) {
    if (*n == 0 || !stream->write(std::span(piece).first(*n))) return;
  }
}
//! [hijack]

}  // namespace websocket_page
