// copy() and relay(): from stream to stream.
#include <tuza/netpoll/conn_stream.h>
#include <tuza/netpoll/copy.h>
#include <tuza/netpoll/tests/netpoll_testing.h>

#include <string>

namespace tuza::net {
namespace {

using namespace testing;

class CopyTest : public WithProcs {};
TUZA_WITH_PROCS(CopyTest);

std::string much(char c) { return std::string(std::size_t{3} << 20, c); }

TEST_P(CopyTest, EverythingAndTheNumberOfBytes) {
  run_with(GetParam(), [] {
    TcpPair from = tcp_pair(), to = tcp_pair();
    std::mt19937_64 random(seed());
    const std::string sent = random_bytes(random, 2'000'003);
    WaitGroup group;
    group.go([&] {
      EXPECT_TRUE(from.client.write_all(sent));
      EXPECT_TRUE(from.client.close_write());
    });
    group.go([&] {
      EXPECT_EQ(copy(to.client, from.server).value(), sent.size());
      EXPECT_TRUE(to.client.close_write());
    });
    EXPECT_TRUE(read_to_end(to.server) == sent);
    group.wait();
  });
}

TEST_P(CopyTest, ItEndsWithItsContextAndWithEitherSide) {
  run_with(GetParam(), [] {
    TcpPair from = tcp_pair(), to = tcp_pair();
    auto [ctx, cancel] = with_cancel(Context::background());
    WaitGroup group;
    group.go([&, ctx] { EXPECT_TRUE(copy(ctx, to.client, from.server).error().cancelled()); });
    wait_until_parked(1, WaitReason::kIoRead);
    cancel();
    group.wait();
    to.client.close();
    ASSERT_TRUE(from.client.write_all("x"));
    EXPECT_TRUE(copy(to.client, from.server).error().closed());
  });
}

TEST_P(CopyTest, ARelayPassesBothDirectionsAndTheirEnds) {
  run_with(GetParam(), [] {
    TcpPair left = tcp_pair(), right = tcp_pair();
    WaitGroup group;
    group.go([&] {
      const Relayed relayed = relay(left.server, right.client).value();
      EXPECT_EQ(relayed.first_to_second, much('q').size());
      EXPECT_EQ(relayed.second_to_first, much('a').size());
    });
    group.go([&] {
      EXPECT_TRUE(left.client.write_all(much('q')));
      EXPECT_TRUE(left.client.close_write()) << "the other direction goes on";
    });
    group.go([&] {
      EXPECT_TRUE(read_to_end(right.server) == much('q'));
      EXPECT_TRUE(right.server.write_all(much('a')));
      EXPECT_TRUE(right.server.close_write());
    });
    EXPECT_TRUE(read_to_end(left.client) == much('a'));
    group.wait();
  });
}

TEST_P(CopyTest, AnErrorOfOneDirectionEndsTheRelay) {
  run_with(GetParam(), [] {
    TcpPair left = tcp_pair(), right = tcp_pair();
    WaitGroup group;
    group.go([&] { EXPECT_FALSE(relay(left.server, right.client)); });
    wait_until_parked(2, WaitReason::kIoRead);
    ASSERT_TRUE(right.server.set_linger_zero());
    right.server.close();
    group.wait();
    EXPECT_EQ(read_some(left.client), "") << "it was closed";
  });
}

TEST_P(CopyTest, ARelayEndsWithItsContext) {
  run_with(GetParam(), [] {
    TcpPair left = tcp_pair(), right = tcp_pair();
    auto [ctx, cancel] = with_cancel(Context::background());
    WaitGroup group;
    group.go([&, ctx] { EXPECT_TRUE(relay(ctx, left.server, right.client).error().cancelled()); });
    wait_until_parked(2, WaitReason::kIoRead);
    cancel();
    group.wait();
  });
}

class ConnStreamTest : public WithProcs {};
TUZA_WITH_PROCS(ConnStreamTest);

TEST_P(ConnStreamTest, AConversationInLines) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    WaitGroup group;
    group.go([&] {
      ConnStream server(pair.server);
      for (std::string line; std::getline(server, line);) server << "got " << line << std::endl;
      EXPECT_TRUE(server.eof());
      EXPECT_FALSE(server.error());
      server.clear();
      server << "bye";  // the destructor writes it
    });
    {
      ConnStream client(pair.client);
      for (int i = 0; i < 3; ++i) {
        client << "line " << i << '\n' << std::flush;
        std::string answer;
        ASSERT_TRUE(std::getline(client, answer));
        EXPECT_EQ(answer, "got line " + std::to_string(i));
      }
      EXPECT_TRUE(pair.client.close_write());
    }
    group.wait();
    EXPECT_EQ(read_some(pair.client), "bye");
  });
}

TEST_P(ConnStreamTest, LongAndShortTextsInOrder) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    std::string expected;
    WaitGroup group;
    for (const std::size_t size : {1u, 4095u, 4096u, 4097u, 100'000u, 7u}) {
      expected += std::string(size, static_cast<char>('a' + size % 26));
    }
    group.go([&] {
      ConnStream out(pair.client);
      for (const std::size_t size : {1u, 4095u, 4096u, 4097u, 100'000u, 7u}) {
        out << std::string(size, static_cast<char>('a' + size % 26));
      }
      out << std::flush;
      EXPECT_TRUE(pair.client.close_write());
    });
    std::string all;
    ConnStream in(pair.server);
    for (char c; in.get(c);) all += c;
    group.wait();
    EXPECT_TRUE(all == expected);
  });
}

TEST_P(ConnStreamTest, ErrorsSetTheBitsAndAreKept) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    ConnStream stream(pair.client);
    pair.client.set_read_deadline(long_ago());
    std::string word;
    EXPECT_FALSE(stream >> word);
    EXPECT_TRUE(stream.error().value().timeout());
    pair.server.close();
    pair.client.close();
    stream.clear();
    EXPECT_FALSE(stream << "x" << std::flush);
    EXPECT_TRUE(stream.bad());
  });
}

}  // namespace
}  // namespace tuza::net
