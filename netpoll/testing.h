// Public header.
//
// A network in memory: listeners and connections without sockets, for tests. <tuza/net.h> does not include it.
//
//     tuza::net::testing::MemoryNetwork network;
//     auto listener = network.listen("10.0.0.1:7000").value();
//     tuza::WaitGroup serving;
//     serving.go([&] { (void)tuza::net::serve(listener, echo); });       // the code under test, as it is
//
//     auto conn = network.dial("10.0.0.1:7000").value();                 // a tuza::net::Conn as any other
//     (void)conn.write_all("hello");
//
// Everything that Conn and Listener promise holds: deadlines, contexts, close(), half-closed streams, resets
// (set_linger_zero()), write timeouts, addresses. Where TCP leaves a choice, it is that of Linux over loopback: an end that
// closes with bytes it has not read resets the connection, and the first write to a closed peer succeeds. Unlike there, bytes
// arrive at once, buffers have one size, and no port, descriptor, thread or system call is needed. Not in memory: TLS
// (TlsClient::start() fails, and so does accept() after use_tls()), urgent data, Unix sockets, names.
//
// Who waits for a connection in memory waits for another goroutine. So a FakeClock (sched/time/fake_clock.h) jumps over the
// time of such waits, and their deadlines are times of its clock: a timeout of an hour takes microseconds, and is exact. And
// goroutines that wait for each other for ever are a deadlock, which is reported.
//
// Thread-safe. Goroutines only. Connections and listeners may outlive the network.
#pragma once

#include <tuza/netpoll/conn.h>
#include <tuza/netpoll/dial.h>
#include <tuza/netpoll/listener.h>

#include <cstddef>
#include <memory>
#include <string_view>
#include <system_error>

namespace tuza {
class Context;
}

namespace tuza::net::testing {

struct MemoryNetworkOptions {
  // That an end receives before its peer's writes wait. At least 1.
  std::size_t buffer_bytes = 64 << 10;
};

class MemoryNetwork {
 public:
  explicit MemoryNetwork(const MemoryNetworkOptions& options = {});
  ~MemoryNetwork();
  MemoryNetwork(const MemoryNetwork&) = delete;
  MemoryNetwork& operator=(const MemoryNetwork&) = delete;

  // `address` is an address and a port; 0: the network chooses the port. EADDRINUSE while another listener has it. Any
  // number of connections waits to be accepted. Does not park.
  [[nodiscard]] Result<Listener> listen(std::string_view address = "127.0.0.1:0");

  // ECONNREFUSED if nobody listens there. The local endpoint is 127.0.0.1 with a port of its own. Does not park: the
  // connection is there before it is accepted.
  [[nodiscard]] Result<Conn> dial(std::string_view address);
  // The cause of `ctx` if it has ended.
  [[nodiscard]] Result<Conn> dial(const Context& ctx, std::string_view address);

  // A connection without a listener.
  struct Pair {
    Conn client, server;
  };
  [[nodiscard]] Result<Pair> pair();

  // The next `times` accepts of the listener at `address` fail, one that waits already included: with
  // std::errc::too_many_files_open, for example, after which the connections still wait. Nothing if nobody listens there.
  void fail_accepts(std::string_view address, std::error_code code, int times = 1);

 private:
  class Hosts;
  const std::unique_ptr<Hosts> hosts_;
};

// After `after_bytes` more bytes, one read (write) of `conn` fails with `code`, one that waits already included; the next
// one continues at the same point. A further order replaces an earlier one of the same direction. Ends the process if `conn`
// is not a connection in memory. Does not park.
void fail_read(Conn& conn, std::error_code code, std::size_t after_bytes = 0);
void fail_write(Conn& conn, std::error_code code, std::size_t after_bytes = 0);

}  // namespace tuza::net::testing
