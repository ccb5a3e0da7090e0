// A server of WebSockets for websocket_client_test.py: websocket_server
//
// Listens on a port of 127.0.0.1, prints the address, and ends at the end of its input. Each message comes back: on /plain without
// compression, on /deflate with the usual one, on /small with the least memory.
#include <tuza/http/router.h>
#include <tuza/http/server.h>
#include <tuza/http/websocket.h>
#include <tuza/netpoll/endpoint.h>
#include <tuza/sched/run.h>
#include <tuza/sched/sync/wait_group.h>

#include <cstdio>
#include <utility>

namespace {

namespace http = tuza::http;
namespace websocket = tuza::http::websocket;

http::Handler echo(websocket::DeflateOptions deflate) {
  return [deflate](http::Request& req, http::ResponseWriter& res) {
    auto socket = websocket::upgrade(
        req, res, {.subprotocols = {"echo"}, .message_bytes_max = 8 << 20, .deflate = deflate});
    if (!socket) return;
    while (auto message = socket->read()) {
      if (!socket->write(*message)) return;
    }
  };
}

}  // namespace

int main() {
  return tuza::run([] {
    http::Router router;
    router.handle("GET /plain", echo({}));
    router.handle("GET /deflate", echo({.enabled = true, .bytes_min = 1}));
    router.handle(
        "GET /small",
        echo({.enabled = true, .context_takeover = false, .window_bits = 9, .level = 9, .bytes_min = 1}));
    http::Server server(std::move(router));
    if (!server.listen("127.0.0.1:0")) return 1;
    std::puts(tuza::net::to_string(server.endpoint()).c_str());
    std::fflush(stdout);
    tuza::WaitGroup group;
    group.go([&server] {
      while (std::getchar() != EOF) {  // blocks its thread
      }
      server.shutdown();
    });
    const bool served = server.serve().has_value();
    group.wait();
    return served ? 0 : 1;
  });
}
