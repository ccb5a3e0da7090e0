// TCP over loopback: a round trip of one byte between two goroutines.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <tuza/netpoll/conn.h>
#include <tuza/netpoll/dial.h>
#include <tuza/netpoll/listener.h>
#include <tuza/sched/bench/bench.h>
#include <tuza/sched/sync/wait_group.h>
#include <unistd.h>

#include <array>
#include <cstddef>

namespace tuza::net {
namespace {

// Answers each byte with its successor, until the stream ends.
void answer(Conn& conn) {
  std::array<std::byte, 64> buffer;
  for (;;) {
    const Result<std::size_t> n = conn.read(buffer);
    if (!n || *n == 0) return;
    for (std::size_t i = 0; i < *n; ++i) buffer[i] = std::byte(std::to_integer<unsigned>(buffer[i]) + 1);
    if (!conn.write_all(std::span(buffer).first(*n))) return;
  }
}

// One round trip; returns false if the answer is wrong or does not come.
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

// A connected pair over loopback; {-1, -1} if the system refuses it.
std::array<int, 2> connected_pair() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::bind(listener, generic, length) != 0 || ::listen(listener, 1) != 0 ||
      ::getsockname(listener, generic, &length) != 0 || ::connect(client, generic, length) != 0) {
    return {-1, -1};
  }
  const int server = ::accept(listener, nullptr, nullptr);
  ::close(listener);
  for (const int fd : {client, server}) {
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  return {client, server};
}

// The lower bound: the same bytes between two sockets, by one thread that never has to wait. The rest of
// BM_TcpPingPong's time is two calls of the poller, and Tuza.
void BM_RawTcpPingPong(benchmark::State& state) {
  constexpr int kBatch = 10'000;
  const auto [client, server] = connected_pair();
  bool right = true;
  while (right && state.KeepRunningBatch(kBatch)) {
    for (int i = 0; i < kBatch && right; ++i) {
      const char question = static_cast<char>(i);
      std::array<char, 64> there{}, back{};
      right = ::write(client, &question, 1) == 1 && ::read(server, there.data(), there.size()) == 1 &&
              ::write(server, there.data(), 1) == 1 && ::read(client, back.data(), back.size()) == 1 &&
              back[0] == question;
    }
  }
  if (!right) state.SkipWithError("a byte came back wrong, or not at all");
  ::close(client);
  ::close(server);
}
BENCHMARK(BM_RawTcpPingPong)->Apply(bench::both_proc_counts);

}  // namespace
}  // namespace tuza::net
