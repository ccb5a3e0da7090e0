// A client of WebSockets for websocket_dial_test.py: websocket_dialler URL [deflate|small]
//
// Sends messages of many lengths, each of which must come back, and closes with 4001. Prints how many came back, "compressed"
// if both sides have agreed on that, and the server's answer to the close frame.
#include <tuza/http/client.h>
#include <tuza/http/websocket.h>
#include <tuza/sched/run.h>

#include <cstddef>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>

namespace {

namespace http = tuza::http;
namespace websocket = tuza::http::websocket;

bool comes_back(websocket::Connection& socket, const websocket::Message& message) {
  if (!socket.write(message)) return false;
  const auto back = socket.read();
  return back && back->kind == message.kind && back->data == message.data;
}

int echo(std::string_view url, const websocket::DeflateOptions& deflate) {
  http::Client client;
  auto socket = websocket::dial(tuza::Context::background(), client, url,
                                {.subprotocols = {"echo"}, .message_bytes_max = 8 << 20, .deflate = deflate});
  if (!socket) {
    std::fprintf(stderr, "%s\n", socket.error().message().c_str());
    return 1;
  }
  int count = 0;
  for (const std::size_t size :
       std::initializer_list<std::size_t>{0, 1, 125, 126, 127, 1023, 1025, 65535, 65536, 65537, 300'000}) {
    std::string text, noise;
    for (unsigned i = 0; text.size() < size; ++i) text += "line " + std::to_string(i % 50) + "\n";
    text.resize(size);
    unsigned random = 1;
    for (std::size_t i = 0; i < size; ++i)
      noise += static_cast<char>((random = random * 1664525 + 1013904223) >> 24);
    count += comes_back(*socket, {websocket::Kind::kText, text});
    count += comes_back(*socket, {websocket::Kind::kBinary, noise});
  }
  const bool closed = socket->close(4001, "done") && socket->read().error().closed();
  std::printf("%d %s %s %d\n", count, std::string(socket->subprotocol()).c_str(),
              socket->compressed() ? "compressed" : "plain", closed ? socket->peer_close()->code : 0);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::string_view way = argc > 2 ? argv[2] : "";
  websocket::DeflateOptions deflate{.enabled = !way.empty(), .bytes_min = 1};
  if (way == "small")
    deflate = {.enabled = true, .context_takeover = false, .window_bits = 9, .bytes_min = 1};
  return tuza::run([&] { return echo(argv[1], deflate); });
}
