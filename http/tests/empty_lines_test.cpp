// Line ends in front of a request, which some clients send behind a body: they are no request (RFC 9112 2.2).
#include <tuza/http/tests/http_testing.h>

namespace tuza::http::testing {
namespace {

using tuza::testing::run_with;
using tuza::testing::WithProcs;

class EmptyLinesTest : public WithProcs {};
TUZA_WITH_PROCS(EmptyLinesTest);

const std::string kPost = post("/echo", "hi");

// What clients send behind a body that has ended.
const std::vector<std::string> kTails = {"\r\n", "\n", "\r", "\r\n\r\n\n\r\n", std::string(20'000, '\n')};

TEST_P(EmptyLinesTest, AreNotAnsweredAtTheEndOfTheStream) {
  run_with(GetParam(), [] {
    TestServer server(hello_router());
    for (const std::string& tail : kTails) {
      for (const std::string& request : {kPost, std::string()}) {
        RawClient client(server.address());
        client.send(request + tail);
        ASSERT_TRUE(client.conn().close_write());
        client.read_until_closed();
        EXPECT_TRUE(client.closed());
        const auto got = parse_responses(client.received(), true);
        ASSERT_EQ(got.size(), request.empty() ? 0u : 1u) << client.received();
        for (const Response& one : got) EXPECT_EQ(one.status, 200);
      }
    }
  });
}

TEST_P(EmptyLinesTest, LeaveTheConnectionIdle) {
  run_with(GetParam(), [] {
    ServerOptions options;
    options.idle_timeout = 20ms;  // closes without an answer; header_timeout, of 10 s, would answer with 408
    TestServer server(hello_router(), options);
    // True: the request was answered. On a busy machine the timeout may pass before it is read, and nothing is answered.
    const auto answered = [&](const std::string& tail, bool apart) {
      RawClient client(server.address());
      client.send(apart ? kPost : kPost + tail);
      if (client.read_responses(1).empty()) return false;
      if (apart) client.send(tail);
      client.read_until_closed(8s);
      EXPECT_TRUE(client.closed());
      EXPECT_EQ(parse_responses(client.received(), true).size(), 1u) << client.received();
      return true;
    };
    for (const std::string& tail : kTails) {
      for (const bool apart : {false, true}) {
        int tries = 1;
        while (!answered(tail, apart) && tries < 100) ++tries;
        EXPECT_LT(tries, 100);
      }
    }
  });
}

TEST_P(EmptyLinesTest, WithoutEndDoNotKeepAConnection) {
  run_with(GetParam(), [] {
    ServerOptions options;
    options.idle_timeout = 20ms;
    TestServer server(hello_router(), options);
    for (const std::string& piece : {std::string("\r"), std::string("\n"), std::string(5000, '\n')}) {
      RawClient client(server.address());
      const auto give_up = Clock::now() + 20s;
      while (client.conn().write_all(piece == "\r" ? "\r\n" : piece) && Clock::now() < give_up) {
        tuza::yield();
      }
      EXPECT_LT(Clock::now(), give_up);
      client.read_until_closed(8s);
      EXPECT_EQ(client.received(), "");
    }
  });
}

TEST_P(EmptyLinesTest, GoBeforeARequestInAnyPieces) {
  run_with(GetParam(), [] {
    TestServer server(hello_router());
    for (const std::string lines : {"\r\n", "\n", "\r\n\n\r\n"}) {
      RawClient client(server.address());
      client.send(kPost + lines + kPost);
      EXPECT_EQ(client.read_responses(2).size(), 2u);
      for (const char byte : lines + kPost) client.send(std::string_view(&byte, 1));
      EXPECT_EQ(client.read_responses(3).size(), 3u);
      client.send(lines);
      client.send(lines + kPost);
      const auto got = client.read_responses(4);
      ASSERT_EQ(got.size(), 4u);
      for (const Response& one : got) EXPECT_EQ(std::to_string(one.status) + one.body, "200hi");
    }
  });
}

// The bytes behind it would be read in one way by us, and in another by a proxy.
TEST_P(EmptyLinesTest, ACarriageReturnAloneIsRefused) {
  run_with(GetParam(), [] {
    TestServer server(hello_router());
    for (const bool apart : {false, true}) {
      RawClient client(server.address());
      client.send(kPost + "\r");
      if (apart) {
        EXPECT_EQ(client.read_responses(1).size(), 1u);
      }
      client.send(kPost);
      client.read_until_closed();
      const auto got = parse_responses(client.received(), true);
      ASSERT_EQ(got.size(), 2u);
      EXPECT_EQ(got[1].status, 400);
    }
  });
}

TEST_P(EmptyLinesTest, DoNotHoldAShutdown) {
  run_with(GetParam(), [] {
    ServerOptions options;
    options.shutdown_timeout = 20s;
    for (const std::string& tail : kTails) {
      TestServer server(hello_router(), options);
      RawClient client(server.address());
      client.send(kPost);
      EXPECT_EQ(client.read_responses(1).size(), 1u);
      client.send(tail);
      const auto begun = Clock::now();
      EXPECT_TRUE(server.server().shutdown()) << "nothing is cut off";
      EXPECT_LT(Clock::now() - begun, 10s);
      client.read_until_closed();
      EXPECT_EQ(parse_responses(client.received(), true).size(), 1u);
    }
  });
}

}  // namespace
}  // namespace tuza::http::testing
