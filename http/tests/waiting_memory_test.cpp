// What a connection takes of the heap while it waits: a service may have ten thousand of each kind. Sanitizers, which have a
// heap of their own, tell nothing.
#include <tuza/http/router.h>
#include <tuza/http/sse.h>
#include <tuza/http/tests/http_testing.h>
#include <tuza/http/tests/websocket_testing.h>
#include <tuza/http/websocket.h>
#include <tuza/sched/time/sleep.h>

#include <malloc.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;

constexpr std::int64_t kMany = 150;

std::int64_t heap_bytes() { return static_cast<std::int64_t>(mallinfo2().uordblks); }

Router waiting_routes() {
  Router router;
  router.handle("GET /idle", [](Request&, ResponseWriter& res) { res.text("idle"); });
  router.handle("GET /waits", [](Request& req, ResponseWriter& res) {
    if (!res.flush()) return;
    (void)sleep_for(req.context(), 1h);
  });
  router.handle("GET /ws", [](Request& req, ResponseWriter& res) {
    auto socket = websocket::upgrade(req, res, {.ping_interval = 1h});
    if (!socket) return;
    while (auto message = socket->read()) {
      if (!socket->write(*message)) return;
    }
  });
  router.handle("GET /events", [](Request& req, ResponseWriter& res) {
    auto stream = sse(req, res);
    if (stream.send({.data = "first"})) (void)sleep_for(stream.context(), 1h);
  });
  return router;
}

// Makes connections that stay, and tells what one of them takes.
class Crowd {
 public:
  explicit Crowd(std::string address) : address_(std::move(address)) {}

  // Each sends `request`, and is there when `answered` has come.
  std::int64_t bytes_each(const std::string& request, std::string_view answered) {
    const std::int64_t before = heap_bytes();
    for (std::int64_t i = 0; i < kMany; ++i) {
      conns_.push_back(net::dial("tcp", address_).value());
      exchange(conns_.back(), request, answered);
    }
    return (heap_bytes() - before) / kMany;
  }
  // The last ones exchange more.
  std::int64_t grow(const std::string& sent, std::string_view answered) {
    const std::int64_t before = heap_bytes();
    for (auto conn = conns_.end() - kMany; conn != conns_.end(); ++conn) exchange(*conn, sent, answered);
    return (heap_bytes() - before) / kMany;
  }

 private:
  // Reads up to the end of the bytes that end in `answered`.
  static void exchange(net::Conn& conn, const std::string& sent, std::string_view answered) {
    conn.set_deadline(net::time_after_now(RawClient::kPatience));
    ASSERT_TRUE(conn.write_all(sent));
    std::array<char, 16'000> buffer;
    for (std::size_t size = 0; !std::string_view(buffer.data(), size).ends_with(answered);) {
      const Result<std::size_t> n = conn.read(std::as_writable_bytes(std::span(buffer).subspan(size)));
      ASSERT_TRUE(n && *n > 0) << std::string(buffer.data(), size);
      size += *n;
    }
  }

  const std::string address_;
  std::vector<net::Conn> conns_;
};

// As a browser asks.
constexpr std::string_view kFields =
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 "
    "Safari/537.36\r\n"
    "Accept-Language: en-US,en;q=0.9\r\nAccept-Encoding: gzip, deflate, br\r\nCache-Control: no-cache\r\n";

std::string asks_for(const std::string& path) {
  return "GET " + path + " HTTP/1.1\r\nHost: app.example\r\n" + std::string(kFields) + "\r\n";
}

TEST(WaitingMemory, GrowsWithWhatHasArrived) {
  run_with(2, [] {
    TestServer server(waiting_routes());
    Crowd crowd(server.address());
    const std::int64_t idle = crowd.bytes_each(asks_for("/idle"), "idle");
    // Beyond that, a handler that waits keeps its request.
    EXPECT_LT(crowd.bytes_each(asks_for("/waits"), "\r\n\r\n") - idle, 3'500);
    EXPECT_LT(crowd.bytes_each(asks_for("/events"), "first\n\n\r\n") - idle, 5'000);
    EXPECT_LT(crowd.bytes_each(handshake(kFields), "\r\n\r\n") - idle, 5'000);
    // A message that was large leaves nothing behind, and a request that was, what its head takes.
    const std::string message = std::string(5'000, 'x') + "the end";
    EXPECT_LT(crowd.grow(frame(2, message), "the end"), 1'500);
    const std::string cookie = "Cookie: a=" + std::string(6'000, 'x') + "\r\n";
    EXPECT_LT(
        crowd.bytes_each("GET /waits HTTP/1.1\r\nHost: app.example\r\n" + cookie + "\r\n", "\r\n\r\n") - idle,
        10'000);
  });
}

}  // namespace
}  // namespace tuza::http::testing
