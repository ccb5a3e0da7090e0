// The end of a connection: it is announced, and takes no response with it.
#include <tuza/http/tests/http_testing.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/sync/chan.h>

#include <stdexcept>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class ClosingTest : public WithProcs {};
TUZA_WITH_PROCS(ClosingTest);

const std::string kChunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

// A next request on a connection whose body is not read to its end would be lost.
TEST_P(ClosingTest, AnEarlyAnswerSaysThatTheConnectionCloses) {
  run_with(GetParam(), [] {
    ServerOptions options;
    options.skip_timeout = 20ms;                 // how long an answer waits for the rest of a chunked body
    TestServer server(hello_router(), options);  // 405 for POST /, without a look at the body
    const struct {
      std::string request;
      bool closes;
    } cases[] = {{post("/", std::string(300'000, 'b')), true},
                 {post("/", std::string(200'000, 'b')), false},
                 {kChunked + "5\r\nhello\r\n0\r\n\r\n", false},
                 {kChunked + "493e0\r\n" + std::string(300'000, 'b') + "\r\n0\r\n\r\n", true},
                 {kChunked + "5\r\nhel", true}};
    for (const auto& one : cases) {
      RawClient client(server.address());
      client.send(one.request);
      const auto first = client.read_responses(1);
      ASSERT_EQ(first.size(), 1u);
      EXPECT_EQ(first[0].status, 405);
      EXPECT_EQ(first[0].header("connection"), one.closes ? "close" : "") << one.request.size();
      if (one.closes) continue;
      client.send(get("/"));
      EXPECT_EQ(client.read_responses(2).size(), 2u);
    }
  });
}

// The kernel resets a connection that is closed with unread data, and the reset destroys what the client has not
// received.
TEST_P(ClosingTest, BytesBehindTheLastRequestDoNotDestroyItsAnswer) {
  run_with(GetParam(), [] {
    const std::string body(2'000'000, 'x');
    TestServer server([&](Request&, ResponseWriter& res) { res.text(body); });
    for (int i = 0; i < 10; ++i) {
      RawClient client(server.address());
      client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
      tuza::testing::yield_until([&] { return server.server().connections() == 1; });
      for (int j = 0; j < i * 10; ++j) yield();
      (void)client.conn().write_all(i % 2 == 0 ? "\r\n" : kChunked);
      const auto got = client.read_responses(1);
      ASSERT_EQ(got.size(), 1u);
      EXPECT_TRUE(got[0].complete);
      EXPECT_EQ(got[0].body.size(), body.size());
    }
  });
}

TEST_P(ClosingTest, ALargeAnswerSaysSoToo) {
  run_with(GetParam(), [] {
    Router router;
    router.handle("POST /whole", [](Request&, ResponseWriter& res) { res.text(std::string(50'000, 'x')); });
    router.handle("POST /pieces", [](Request&, ResponseWriter& res) {
      for (int i = 0; i < 5; ++i) (void)res.write(std::string(10'000, 'x'));
    });
    TestServer server(std::move(router));
    for (const char* path : {"/whole", "/pieces"}) {
      RawClient client(server.address());
      client.send(post(path, std::string(300'000, 'b')));
      const auto got = client.read_responses(1);
      ASSERT_EQ(got.size(), 1u);
      EXPECT_EQ(got[0].header("connection"), "close") << path;
    }
  });
}

// Nothing waits for the rest of a body if the connection closes anyway: the answer comes before the body has ended.
TEST_P(ClosingTest, AnAnswerThatClosesDoesNotWaitForTheBody) {
  run_with(GetParam(), [] {
    ServerOptions options;
    options.skip_timeout = 1h;
    TestServer server(hello_router(), options);
    RawClient client(server.address());
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel");
    EXPECT_EQ(client.read_responses(1).size(), 1u);
  });
}

// A client that sends its body after it was refused still gets to read why.
TEST_P(ClosingTest, ARefusedClientMaySendOn) {
  run_with(GetParam(), [] {
    TestServer server(hello_router());
    for (const std::string head : {"GET https://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n",
                                   "POST / HTTP/1.1\r\nHost: a\r\nExpect: x\r\nContent-Length: 5\r\n\r\n"}) {
      RawClient client(server.address());
      client.send(head);
      EXPECT_GE(client.read_responses(1).at(0).status, 400);
      EXPECT_TRUE(client.conn().write_all("he"));
      client.read_until_closed();  // its side of the connection
      EXPECT_TRUE(client.conn().write_all("llo")) << "no reset: it still listens";
    }
  });
}

TEST_P(ClosingTest, GoexitKeepsAWholeAnswer) {
  run_with(GetParam(), [] {
    TestServer server([](Request&, ResponseWriter& res) {
      res.text("whole");
      goexit();
    });
    EXPECT_EQ(fetch(server.address(), get("/")).body, "whole");
  });
}

TEST_P(ClosingTest, NoAnswerToHeadHasABody) {
  run_with(GetParam(), [] {
    TestServer server(hello_router());
    for (const std::string fields :
         {"Host: a\r\nContent-Length: 99999999999\r\n", "Host: a\r\nExpect: x\r\n", "", "Bad Name: x\r\n"}) {
      RawClient client(server.address());
      client.send("\r\nHEAD / HTTP/1.1\r\n" + fields + "\r\n");
      client.read_until_closed();
      EXPECT_TRUE(client.received().starts_with("HTTP/1.1 4")) << client.received();
      EXPECT_TRUE(client.received().ends_with("\r\n\r\n")) << client.received();
    }
  });
}

TEST_P(ClosingTest, AnHttpsTargetNeedsTls) {
  run_with(GetParam(), [] {
    TestServer server(hello_router());
    EXPECT_EQ(fetch(server.address(), "GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n").status, 421);
    EXPECT_EQ(fetch(server.address(), "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n").status, 200);
  });
}

// Logs and limits need it most of those who behave badly.
TEST_P(ClosingTest, TheAddressOfAClientThatHasResetIsKnown) {
  run_with(GetParam(), [] {
    Chan<int> begun(1);
    Chan<std::string> address(1);
    TestServer server([&](Request& req, ResponseWriter&) {
      begun.send(1);
      req.context().wait();
      address.send(std::string(req.remote()));
    });
    RawClient client(server.address());
    const std::string own = client.conn().local_address().value();
    client.send(get("/"));
    (void)begun.recv();
    (void)client.conn().set_linger_zero();
    client.conn().close();
    EXPECT_EQ(address.recv(), own);
  });
}

TEST(ServerNameTest, MustBeOneLine) {
  EXPECT_THROW(http::Server(hello_router(), {.server_name = "a\r\nX: y"}), std::invalid_argument);
}

}  // namespace
}  // namespace tuza::http::testing
