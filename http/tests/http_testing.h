// Helpers shared by the HTTP tests: a server in this process, a raw client, parsed responses.
#pragma once

#include <tuza/http/server.h>
#include <tuza/netpoll/conn.h>
#include <tuza/netpoll/dial.h>
#include <tuza/netpoll/listener.h>
#include <tuza/netpoll/tls.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tuza::http::testing {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// A server on a port of its own, for the length of a scope on a goroutine.
class TestServer {
 public:
  // With `tls`, serves over TLS.
  explicit TestServer(Handler handler, ServerOptions options = {},
                      std::shared_ptr<net::TlsServer> tls = nullptr);
  ~TestServer();

  [[nodiscard]] std::string address() const { return net::to_string(server_.endpoint()); }
  http::Server& server() { return server_; }

 private:
  http::Server server_;
  WaitGroup serving_;
};

struct Response {
  int status = 0;                                   // 0: not an HTTP response
  std::multimap<std::string, std::string> headers;  // names in lower case
  std::string body;
  bool complete = false;

  [[nodiscard]] std::string header(const std::string& name) const;
  [[nodiscard]] bool has(const std::string& name) const { return headers.contains(name); }
};

// Parses `bytes`; `closed`: the stream ended there. Interim (1xx) responses are included. `to_head`: the
// first response answers HEAD.
std::vector<Response> parse_responses(std::string_view bytes, bool closed, bool to_head = false);

// A connection that collects what it receives.
class RawClient {
 public:
  explicit RawClient(const std::string& address);
  explicit RawClient(net::Conn conn) : conn_(std::move(conn)) {}

  void send(std::string_view bytes);
  // Nothing takes that long: a read that does dumps the goroutines, which shows who waits for whom.
  static constexpr std::chrono::milliseconds kPatience = 20s;
  // Reads until `enough` is true of the received bytes, the peer closes, or `patience` passes without a byte.
  template <class Enough>
  void read_until(Enough enough, std::chrono::milliseconds patience = kPatience) {
    while (!closed_ && !enough()) {
      if (!read_some(patience)) return;
    }
  }
  void read_until_closed(std::chrono::milliseconds patience = kPatience) {
    read_until([] { return false; }, patience);
  }
  // Reads until there are `n` complete final responses.
  std::vector<Response> read_responses(std::size_t n, bool to_head = false);

  [[nodiscard]] bool closed() const { return closed_; }
  [[nodiscard]] const std::string& received() const { return received_; }
  net::Conn& conn() { return conn_; }

 private:
  bool read_some(std::chrono::milliseconds patience);

  net::Conn conn_;
  std::string received_;
  bool closed_ = false;
};

// Sends `request` on a connection of its own and returns the first final response.
Response fetch(const std::string& address, std::string_view request, bool to_head = false);
// `GET /` answers "Hello, World!", `POST /echo` the body.
Router hello_router();
// Answers with `text`.
Handler saying(std::string text);
std::string post(std::string_view path, std::string_view body, std::string_view fields = "");
inline std::string get(std::string_view path) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
}

}  // namespace tuza::http::testing
