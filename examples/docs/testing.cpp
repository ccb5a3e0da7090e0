// The code on docs/guide/testing.md.
#include <tuza/http.h>
#include <tuza/http/testing.h>
#include <tuza/http/testing_server.h>
#include <tuza/http/testing_upstreams.h>
#include <tuza/net.h>
#include <tuza/netpoll/testing.h>
#include <tuza/tuza.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#define EXPECT_TRUE(condition) (void)(condition)
#define EXPECT_EQ(a, b) (void)((a) == (b))

namespace testing_page {

using namespace std::chrono_literals;
using tuza::Context;
using tuza::http::Request;
using tuza::http::ResponseWriter;

tuza::http::Router make_router() {
  tuza::http::Router router;
  router.handle("GET /items/{id}", [](Request& req, ResponseWriter& res) {
    res.text("item " + req.path_value<std::string>("id") + "\n");
  });
  return router;
}
void echo(tuza::net::Conn& conn) {
  std::array<std::byte, 512> buffer;
  while (auto n = conn.read(buffer)) {
    if (*n == 0 || !conn.write_all(std::span(buffer).first(*n))) return;
  }
}

void test_of_a_handler() {
  //! [handler]
  const auto res = tuza::http::testing::call(make_router(), "GET /items/7");
  EXPECT_EQ(res.status, 200);
  EXPECT_EQ(res.body, "item 7\n");
  //! [handler]
}

void count_lines(Request& req, ResponseWriter& res) {
  std::array<std::byte, 512> buffer;
  for (int count = 1;; ++count) {
    const auto n = req.read_body(buffer);
    if (!n || *n == 0 || !res.write(std::to_string(count) + "\n") || !res.flush()) return;
  }
}
void endless(Request& req, ResponseWriter& res) {
  while (!req.context().done()) (void)res.write("news\n");
}

void test_of_pieces() {
  //! [pieces]
  int arrived = 0;
  const auto next_piece = [&]() -> tuza::Result<std::string> {
    tuza::sleep_for(1s);  // as late as a real one: of a FakeClock, if there is one
    return ++arrived <= 3 ? "line\n" : "";
  };
  const auto res = tuza::http::testing::call(count_lines, "POST /", {.next_piece = next_piece});
  EXPECT_EQ(res.pieces, (std::vector<std::string>{"1\n", "2\n", "3\n"}));  // as flushed

  const auto cut = tuza::http::testing::call(endless, "GET /feed", {.client_reads = 100});
  EXPECT_EQ(cut.body.size(), 100u);
  EXPECT_TRUE(!cut.complete);  // the feed's writes failed, and its context ended as if a client had gone
  //! [pieces]
}

void test_of_a_server() {
  //! [server]
  tuza::run([] {
    tuza::http::testing::Server server(make_router());
    auto res = server.client().get(Context::background(), server.url("/items/7")).value();
    EXPECT_EQ(res.status(), 200);
    EXPECT_EQ(res.body().value(), "item 7\n");
  });  // shut down; ends the process if a handler has left a goroutine behind
  //! [server]
}

void test_of_bytes() {
  tuza::run([] {
    tuza::http::testing::Server server(make_router());
    //! [bytes]
    tuza::net::Conn conn = server.dial().value();
    EXPECT_TRUE(conn.write_all("GET /items/7 HTTP/1.1\r\n\r\n"));  // no Host
    std::array<char, 12> status;
    EXPECT_TRUE(conn.read_full(std::as_writable_bytes(std::span(status))));
    EXPECT_EQ(std::string_view(status.data(), status.size()), "HTTP/1.1 400");
    //! [bytes]
  });
}

void test_of_a_timeout() {
  //! [timeout]
  tuza::run([] {
    tuza::testing::FakeClock clock;  // before all that it governs
    tuza::http::testing::Server server(make_router(), {.server = {.idle_timeout = 60s}});
    tuza::net::Conn conn = server.dial().value();
    std::array<std::byte, 1> byte;
    EXPECT_EQ(conn.read(byte).value(), 0u);  // the server has closed the connection
    EXPECT_EQ(clock.elapsed(), 60s);         // in microseconds
  });
  //! [timeout]
}

void test_over_a_port() {
  tuza::run([] {
    //! [socket]
    tuza::http::testing::Server server(make_router(), {.socket = true});  // 127.0.0.1 and a free port
    //! [socket]
    (void)server.address();
  });
}

void test_of_a_protocol() {
  //! [network]
  tuza::run([] {
    tuza::net::testing::MemoryNetwork network({.buffer_bytes = 4096});
    auto listener = network.listen("10.0.0.1:7000").value();
    tuza::WaitGroup serving;
    serving.go([&] { EXPECT_TRUE(tuza::net::serve(listener, echo)); });

    auto conn = network.dial("10.0.0.1:7000").value();
    EXPECT_TRUE(conn.write_all("hello"));
    conn.close();
    listener.close();
    serving.wait();
  });
  //! [network]
}

void test_of_errors() {
  tuza::run([] {
    tuza::net::testing::MemoryNetwork network;
    auto listener = network.listen("10.0.0.1:7000").value();
    //! [errors]
    auto [client, server] = network.pair().value();  // without a listener
    tuza::net::testing::fail_write(client, std::make_error_code(std::errc::network_down), 100);
    EXPECT_TRUE(client.write_all(std::string(200, 'x')).error().is(std::errc::network_down));

    EXPECT_TRUE(server.set_linger_zero());  // a reset
    server.close();
    network.fail_accepts("10.0.0.1:7000", std::make_error_code(std::errc::too_many_files_open));
    //! [errors]
  });
}

std::optional<int> items_in_stock(tuza::http::Client& client);

void test_with_upstreams() {
  //! [upstreams]
  tuza::run([] {
    tuza::testing::FakeClock clock;
    tuza::http::testing::FakeUpstreams upstreams;
    auto& stock = upstreams.add("https://stock.example",
                                [](Request&, ResponseWriter& res) { res.json(R"({"items":7})"); });
    tuza::http::Client client(upstreams.client_options({.head_timeout = 5s}));

    EXPECT_EQ(items_in_stock(client), 7);
    EXPECT_EQ(stock.requests().at(0).target, "/items?count=1");
    stock.delay(1min);
    EXPECT_EQ(items_in_stock(client), std::nullopt);  // after 5 s that take microseconds
    stock.drop_requests();  // or refuse_dials(), or break_off() after some bytes of the body
    EXPECT_EQ(items_in_stock(client), std::nullopt);
    EXPECT_EQ(upstreams.close(), "");  // no other host was asked, and no goroutine is left
  });
  //! [upstreams]
}

void test_of_a_client(tuza::net::testing::MemoryNetwork& network) {
  //! [dial]
  tuza::http::Client client({.dial = [&](const Context& ctx, const tuza::http::Url& url) {
    return network.dial(ctx, url.address());  // "http://10.0.0.1:7000/"
  }});
  //! [dial]
  client.close_idle();
}

}  // namespace testing_page
