// Boost.Asio and Beast on goroutines, in one file with standalone Asio.
#include <tuza/framework/asio_bridge.h>
#include <tuza/framework/asio_endpoint.h>
#include <tuza/framework/asio_sync_stream.h>
#include <tuza/framework/boost_asio_bridge.h>
#include <tuza/framework/boost_sync_stream.h>
#include <tuza/http/router.h>
#include <tuza/http/server.h>
#include <tuza/netpoll/dial.h>
#include <tuza/sched/go.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <gtest/gtest.h>
#include <asio/steady_timer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>

#include <array>
#include <chrono>
#include <string>
#include <thread>

namespace tuza {
namespace {

using namespace std::chrono_literals;
namespace beast = boost::beast;
using boost::asio::ip::tcp;
using testing::run_with;
using testing::WithProcs;

class BoostTest : public WithProcs {};
TUZA_WITH_PROCS(BoostTest);

TEST(BoostEndpoint, IsTheSameInBothLibraries) {
  const net::Endpoint endpoint = net::parse_endpoint("[2001:db8::1]:80").value();
  const tcp::endpoint theirs = to_asio<tcp>(endpoint);
  EXPECT_EQ(theirs.address().to_string(), "2001:db8::1");
  EXPECT_EQ(theirs.port(), 80);
  EXPECT_EQ(from_asio(theirs), endpoint);
}

TEST_P(BoostTest, BothLibrariesInOneFunction) {
  run_with(GetParam(), [] {
    AsioContext ours;
    BoostAsioContext boosts;
    asio::steady_timer one(ours.io(), 5ms);
    boost::asio::steady_timer other(boosts.io(), 5ms);
    EXPECT_TRUE(one.async_wait(use_goroutine));
    EXPECT_TRUE(other.async_wait(use_goroutine));
  });
}

TEST_P(BoostTest, AnErrorOfTheSystemIsTheStandards) {
  run_with(GetParam(), [] {
    BoostAsioContext context;
    tcp::acceptor acceptor(context.io(), tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    const tcp::endpoint nobody = acceptor.local_endpoint();
    acceptor.close();
    tcp::socket socket(context.io());
    const Result<void> refused = socket.async_connect(nobody, use_goroutine);
    ASSERT_FALSE(refused);
    EXPECT_TRUE(refused.error().is(std::errc::connection_refused)) << refused.error().message();
  });
}

TEST_P(BoostTest, TheEndOfAStreamAndACancelledRead) {
  run_with(GetParam(), [] {
    BoostAsioContext context;
    tcp::acceptor acceptor(context.io(), tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    tcp::socket socket(context.io());
    WaitGroup group;
    group.go([&] { EXPECT_TRUE(socket.async_connect(acceptor.local_endpoint(), use_goroutine)); });
    Result<tcp::socket> peer = acceptor.async_accept(use_goroutine);
    ASSERT_TRUE(peer);
    group.wait();
    std::array<char, 16> some;
    auto [ctx, cancel] = with_cancel(Context::background());
    group.go([&, ctx] {
      const Result<std::size_t> n = socket.async_read_some(boost::asio::buffer(some), use_goroutine(ctx));
      ASSERT_FALSE(n);
      EXPECT_TRUE(n.error().cancelled());
    });
    testing::wait_until_parked(1, WaitReason::kCompletion);
    cancel();
    group.wait();
    peer->close();
    const Result<std::size_t> end = socket.async_read_some(boost::asio::buffer(some), use_goroutine);
    ASSERT_FALSE(end);
    EXPECT_EQ(end.error().code(), boost::system::error_code(boost::asio::error::eof));
  });
}

TEST_P(BoostTest, InsideAHandlerItEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run_with(2,
                        [] {
                          BoostAsioContext context;
                          boost::asio::post(context.io(), [&context] {
                            boost::asio::steady_timer timer(context.io(), 1ms);
                            (void)timer.async_wait(use_goroutine);
                          });
                          sleep_for(1h);
                        }),
               "use_goroutine on a thread that is not a goroutine");
}

class HttpServer {
 public:
  HttpServer() : server_(router(), {}) {
    EXPECT_TRUE(server_.listen("127.0.0.1:0"));
    serving_.go([this] { EXPECT_TRUE(server_.serve()); });
  }
  ~HttpServer() {
    server_.shutdown();
    serving_.wait();
  }
  [[nodiscard]] net::Endpoint endpoint() const { return server_.endpoint(); }

 private:
  static http::Router router() {
    http::Router router;
    router.handle("POST /echo", [](http::Request& req, http::ResponseWriter& res) {
      if (const auto body = req.body()) res.text(*body);
    });
    return router;
  }

  http::Server server_;
  WaitGroup serving_;
};

beast::http::request<beast::http::string_body> echo_request(const std::string& body) {
  beast::http::request<beast::http::string_body> request{beast::http::verb::post, "/echo", 11};
  request.set(beast::http::field::host, "localhost");
  request.body() = body;
  request.prepare_payload();
  return request;
}

TEST_P(BoostTest, BeastSpeaksHttpByAsynchronousCalls) {
  run_with(GetParam(), [] {
    const HttpServer server;
    BoostAsioContext context;
    beast::tcp_stream stream(context.io());
    ASSERT_TRUE(stream.async_connect(
        tcp::endpoint(boost::asio::ip::address_v4::loopback(), server.endpoint().port()), use_goroutine));
    const auto request = echo_request("through Beast");
    //! [beast]
    ASSERT_TRUE(beast::http::async_write(stream, request, use_goroutine));
    beast::flat_buffer buffer;
    beast::http::response<beast::http::string_body> response;
    ASSERT_TRUE(beast::http::async_read(stream, buffer, response, use_goroutine));
    //! [beast]
    EXPECT_EQ(response.result_int(), 200u);
    EXPECT_EQ(response.body(), "through Beast");
  });
}

TEST_P(BoostTest, BeastSpeaksHttpOverAConnection) {
  run_with(GetParam(), [] {
    const HttpServer server;
    net::Conn conn = net::dial("tcp", net::to_string(server.endpoint())).value();
    BoostSyncStream stream(conn);
    for (const std::string body : {"one", "two"}) {
      beast::http::write(stream, echo_request(body));
      beast::flat_buffer buffer;
      beast::http::response<beast::http::string_body> response;
      beast::http::read(stream, buffer, response);
      EXPECT_EQ(response.body(), body);
    }
  });
}

TEST_P(BoostTest, BeastSpeaksWebSocketOverConnections) {
  run_with(GetParam(), [] {
    net::Listener listener = net::listen("tcp", "127.0.0.1:0").value();
    WaitGroup group;
    group.go([&listener] {
      net::Conn conn = listener.accept().value();
      beast::websocket::stream<BoostSyncStream> socket(conn);
      socket.accept();
      for (;;) {
        beast::flat_buffer message;
        beast::error_code error;
        socket.read(message, error);
        if (error == beast::websocket::error::closed) return;
        ASSERT_FALSE(error) << error.message();
        socket.text(socket.got_text());
        socket.write(message.data());
      }
    });
    //! [websocket]
    net::Conn conn = net::dial("tcp", listener.address()).value();
    beast::websocket::stream<BoostSyncStream> socket(conn);
    socket.handshake("localhost", "/chat");
    //! [websocket]
    for (const std::size_t size : {5u, 300u, 100'000u}) {
      const std::string sent(size, 'w');
      socket.write(boost::asio::buffer(sent));
      beast::flat_buffer got;
      socket.read(got);
      EXPECT_TRUE(beast::buffers_to_string(got.data()) == sent);
    }
    socket.close(beast::websocket::close_code::normal);
    group.wait();
  });
}

}  // namespace
}  // namespace tuza
