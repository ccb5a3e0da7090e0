// Public header.
//
// A server for tests of handlers, over a network in memory. <tuza/http.h> does not include it.
//
//     tuza::run([] {
//       tuza::http::testing::Server server(make_router());
//       auto res = server.client().get(tuza::Context::background(), server.url("/items/7"));
//       assert(res->status() == 200 && res->body() == "item 7\n");
//     });
//
// It is an http::Server, with its parser, limits, timeouts and shutdown, whose connections are in memory (netpoll/testing.h):
// no port is taken, and no byte passes through the kernel. With a FakeClock (sched/time/fake_clock.h), which has to be
// made before, an idle_timeout of a minute takes microseconds. The same tests run over a port of loopback with
// `.socket = true`. A handler alone, without a connection, is tested by call() (http/testing.h).
//
// The destructor shuts the server down, and ends the process with a list if goroutines are left that were started since the
// constructor: by handlers, say (sched/time/leak_check.h). So it does for a handler that runs on a second after it was cut
// off.
//
// Thread-safe, except for construction, destruction and close(). Goroutines only.
#pragma once

#include <tuza/http/client.h>
#include <tuza/http/handler.h>
#include <tuza/http/options.h>
#include <tuza/http/server.h>
#include <tuza/netpoll/testing.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/time/leak_check.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tuza::http::testing {

struct ServerSetup {
  ServerOptions server{};
  ClientOptions client{};                 // of client(); its dial, dial_tls and address are the server's
  bool socket = false;                    // on 127.0.0.1, with a port that the system chooses
  std::shared_ptr<net::TlsServer> tls{};  // with `socket` only; `client.tls` says whom the client trusts
  std::size_t buffer_bytes = 64 << 10;    // in memory: what an end receives before its peer's writes wait
  bool leak_check = true;
};

class Server {
 public:
  // Serves from here on. Throws std::invalid_argument if the handler is empty, as check(setup.server) does, and for `tls`
  // without `socket`; std::runtime_error if there is no socket. Does not park.
  explicit Server(Handler handler, ServerSetup setup = {});
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Parks.
  ~Server();

  // "http://127.0.0.1:49152/items/7". The client comes here whatever host a URL names: "http://example.org/" tests a virtual
  // host, and "https://example.org/", in memory, without TLS.
  [[nodiscard]] std::string url(std::string_view target = "/") const;
  [[nodiscard]] const std::string& address() const { return server_.address(); }
  // A client of this server. Parks in calls only.
  [[nodiscard]] Client& client() { return *client_; }
  // A connection, for tests that write the bytes of requests themselves. With `tls` it is still to be encrypted
  // (net::TlsClient::start()). Parks with `socket`.
  [[nodiscard]] Result<net::Conn> dial();
  // For its counters.
  [[nodiscard]] http::Server& server() { return server_; }
  // For errors by order, and for further listeners. Not with `socket`: then the process ends.
  [[nodiscard]] net::testing::MemoryNetwork& network();

  // Shuts the server down, as the destructor, and returns the goroutines that are left, one in each line: "" if there are
  // none. The destructor then says nothing. May be repeated. Parks.
  [[nodiscard]] std::string close();

 private:
  void end();

  std::optional<tuza::testing::LeakCheck> leaks_;
  std::unique_ptr<net::testing::MemoryNetwork> network_;  // null: a socket
  const bool tls_;
  http::Server server_;
  WaitGroup serving_;
  std::unique_ptr<Client> client_;
  bool ended_ = false;
};

}  // namespace tuza::http::testing
