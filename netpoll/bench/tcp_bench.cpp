// TCP over loopback: one byte there and back again between two goroutines.
#include <tuza/netpoll/tcp.h>
#include <tuza/sched/bench/bench.h>
#include <tuza/sched/sync/wait_group.h>

#include <array>
#include <cstddef>

namespace tuza::net {
namespace {

// Answers each byte with the next one, until the stream ends.
void answer(Conn& conn) {
  std::array<std::byte, 64> buffer;
  for (;;) {
    const Result<std::size_t> n = conn.read(buffer);
    if (!n || *n == 0) return;
    for (std::size_t i = 0; i < *n; ++i) buffer[i] = std::byte(std::to_integer<unsigned>(buffer[i]) + 1);
    if (!conn.write_all(std::span(buffer).first(*n))) return;
  }
}

// One round trip; false if the answer is wrong or does not come.
bool ask(Conn& conn, std::byte question) {
  if (!conn.write_all(std::span(&question, 1))) return false;
  std::array<std::byte, 64> buffer;
  const Result<std::size_t> n = conn.read(buffer);
  return n && *n == 1 && buffer[0] == std::byte(std::to_integer<unsigned>(question) + 1);
}

void BM_TcpPingPong(benchmark::State& state) {
  constexpr int kBatch = 10'000;
  bench::in_runtime(state.range(0), [&] {
    Listener listener = listen("tcp", "127.0.0.1:0").value();
    Conn client = dial("tcp", to_string(listener.endpoint())).value();
    Conn server = listener.accept().value();
    WaitGroup group;
    group.go([&server] { answer(server); });
    bool right = true;
    while (right && state.KeepRunningBatch(kBatch)) {
      for (int i = 0; i < kBatch && right; ++i) right = ask(client, static_cast<std::byte>(i));
    }
    if (!right) state.SkipWithError("a byte came back wrong, or not at all");
    client.close();
    group.wait();
  });
}
BENCHMARK(BM_TcpPingPong)->Apply(bench::both_proc_counts);

}  // namespace
}  // namespace tuza::net
