// A chat for browsers by WebSockets: websocket_chat, and a browser or several on http://127.0.0.1:8080
//
//     GET /              the page
//     GET /chat?name=    the WebSocket: each text message goes to all guests, as "name: text"
//
// Each guest has two goroutines: its handler reads, another one writes what is in the guest's queue. A guest that reads too
// slowly is closed with 1013. At shutdown the guests get 1001, without a line of code here.
#include <tuza/examples/websocket_chat/page.h>
#include <tuza/examples/websocket_chat/room.h>
#include <tuza/framework/app.h>
#include <tuza/http/status_error.h>
#include <tuza/http/websocket.h>
#include <tuza/sched/sync/wait_group.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace {

namespace http = tuza::http;
namespace websocket = tuza::http::websocket;
using http::Request;
using http::ResponseWriter;
using websocket_chat::Guest;
using websocket_chat::Room;

constexpr std::size_t kNameBytesMax = 80;  // 20 characters
constexpr std::size_t kTextBytesMax = 4'000;

// Neither what cannot be sent to others, nor what would look like a line of somebody else.
bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax && websocket::is_utf8(name) &&
         std::ranges::none_of(
             name, [](char c) { return (c >= 0 && c < 0x20) || c == ':' || c == '*' || c == 0x7f; });
}

// A guest in the room, and the goroutine that writes its queue.
class Presence {
 public:
  Presence(Room& room, Guest& guest, websocket::Connection& socket) : room_(room), guest_(guest) {
    room_.join(guest_);
    writer_.go([&guest, &socket] {
      for (;;) {
        const auto line = guest.queue.recv(guest.stay.ctx());
        if (!line || !socket.write_text(guest.stay.ctx(), ***line)) return;
      }
    });
  }
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;
  ~Presence() {
    room_.leave(guest_);
    guest_.stay.cancel();
    writer_.wait();
  }

 private:
  Room& room_;
  Guest& guest_;
  tuza::WaitGroup writer_;
};

void chat(Room& room, Request& req, ResponseWriter& res) {
  Guest guest(std::string(req.query_value("name").value_or("")));
  if (!is_name(guest.name)) throw http::StatusError(400, "who are you?");
  // Lines are short: a window of 1 KiB is enough, and takes 36 KiB for each guest instead of 160.
  auto socket = websocket::upgrade(
      req, res, {.message_bytes_max = kTextBytesMax, .deflate = {.enabled = true, .window_bits = 10}});
  if (!socket) return;
  const Presence present(room, guest, *socket);
  while (const auto message = socket->read(guest.stay.ctx())) {
    if (message->kind != websocket::Kind::kText) return (void)socket->close(1003, "text only");
    room.say(guest, message->data);
  }
  if (guest.stay.ctx().done()) (void)socket->close(1013, "you read too slowly");
}

}  // namespace

int main(int argc, char** argv) {
  tuza::App app("websocket_chat");
  Room room;
  return app.run(argc, argv, [&] {
    app.router().handle("GET /{$}", [](Request&, ResponseWriter& res) {
      res.set_header(
          "Content-Security-Policy",
          "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'");
      res.html(websocket_chat::kPage);
    });
    app.router().handle("GET /chat", [&room](Request& req, ResponseWriter& res) { chat(room, req, res); });
  });
}
