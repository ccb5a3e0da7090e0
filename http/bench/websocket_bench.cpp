// An echo of 64 bytes between two goroutines over loopback: by a WebSocket of the HTTP server, and by raw TCP. The client
// sends and receives the same bytes each time, so the difference is the server's.
#include <tuza/http/server.h>
#include <tuza/http/websocket.h>
#include <tuza/netpoll/conn.h>
#include <tuza/netpoll/dial.h>
#include <tuza/netpoll/listener.h>
#include <tuza/sched/bench/bench.h>
#include <tuza/sched/sync/wait_group.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tuza::http {
namespace {

constexpr std::size_t kPayload = 64;
constexpr int kBatch = 10'000;

// Sends `question` and reads as many bytes as `answer` has; false if they are others.
bool ask(net::Conn& conn, std::string_view question, std::string_view answer) {
  if (!conn.write_all(question)) return false;
  std::array<std::byte, 256> buffer;
  const std::span<std::byte> expected = std::span(buffer).first(answer.size());
  return conn.read_full(expected) &&
         std::string_view(reinterpret_cast<const char*>(buffer.data()), answer.size()) == answer;
}

void measure(benchmark::State& state, net::Conn& client, std::string_view question, std::string_view answer) {
  bool right = true;
  while (right && state.KeepRunningBatch(kBatch)) {
    for (int i = 0; i < kBatch && right; ++i) right = ask(client, question, answer);
  }
  if (!right) state.SkipWithError("the answer is wrong, or does not come");
}

void BM_TcpEcho64(benchmark::State& state) {
  bench::in_runtime(state.range(0), [&] {
    net::Listener listener = net::listen("tcp", "127.0.0.1:0").value();
    net::Conn client = net::dial("tcp", net::to_string(listener.endpoint())).value();
    net::Conn server = listener.accept().value();
    WaitGroup group;
    group.go([&server] {
      std::array<std::byte, 4096> buffer;
      for (;;) {
        const Result<std::size_t> n = server.read(buffer);
        if (!n || *n == 0 || !server.write_all(std::span(buffer).first(*n))) return;
      }
    });
    const std::string payload(kPayload, 'x');
    measure(state, client, payload, payload);
    client.close();
    group.wait();
  });
}
BENCHMARK(BM_TcpEcho64)->Apply(bench::both_proc_counts);

void echo(Request& req, ResponseWriter& res) {
  auto socket = websocket::upgrade(req, res);
  if (!socket) return;
  while (auto message = socket->read()) {
    if (!socket->write(*message)) return;
  }
}

void BM_WebSocketEcho64(benchmark::State& state) {
  bench::in_runtime(state.range(0), [&] {
    Server server(echo);
    if (!server.listen("127.0.0.1:0")) return state.SkipWithError("no port");
    WaitGroup group;
    group.go([&server] { (void)server.serve(); });
    net::Conn client = net::dial("tcp", net::to_string(server.endpoint())).value();
    (void)client.write_all(
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
    std::string head;
    std::array<char, 1> byte;
    while (!head.ends_with("\r\n\r\n") && client.read(std::span(byte)).value_or(0) == 1) head += byte[0];
    const std::string payload(kPayload, 'x');
    std::string masked = payload;
    const std::array<char, 4> mask{1, 2, 3, 4};
    for (std::size_t i = 0; i < masked.size(); ++i) masked[i] = static_cast<char>(masked[i] ^ mask[i % 4]);
    measure(state, client, "\x82\xc0\x01\x02\x03\x04" + masked, "\x82\x40" + payload);
    client.close();
    server.shutdown();
    group.wait();
  });
}
BENCHMARK(BM_WebSocketEcho64)->Apply(bench::both_proc_counts);

}  // namespace
}  // namespace tuza::http
