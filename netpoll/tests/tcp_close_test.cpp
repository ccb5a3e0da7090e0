// Closing a connection that others use: their calls return at once, with Errc::kClosed.
#include <tuza/netpoll/tests/netpoll_testing.h>

namespace tuza::net::testing {
namespace {

class TcpCloseTest : public WithProcs {};
TUZA_WITH_PROCS(TcpCloseTest);

TEST_P(TcpCloseTest, EndsAReadThatWaits) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    WaitGroup group;
    group.go(
        [&] { EXPECT_EQ(read_some(pair.client), "<read: use of a closed connection, listener or file>"); });
    wait_until_parked(1, WaitReason::kIoRead);
    pair.client.close();
    group.wait();
    EXPECT_EQ(read_some(pair.server), "") << "the peer sees the end";
  });
}

TEST_P(TcpCloseTest, EndsAWriteThatWaits) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    const std::string more_than_all_buffers(std::size_t{32} << 20, 'x');
    WaitGroup group;
    group.go([&] { EXPECT_TRUE(pair.client.write_all(more_than_all_buffers).error().closed()); });
    wait_until_parked(1, WaitReason::kIoWrite);
    pair.client.close();
    group.wait();
  });
}

TEST_P(TcpCloseTest, EndsEveryAcceptThatWaitsAndAllThatCome) {
  run_with(GetParam(), [] {
    Listener listener = listen_on_loopback();
    WaitGroup group;
    for (int i = 0; i < 4; ++i) {
      group.go([&] { EXPECT_TRUE(listener.accept().error().closed()); });
    }
    wait_until_parked(1, WaitReason::kIoRead);
    wait_until_parked(3, WaitReason::kSemaphore);
    listener.close();
    group.wait();
    EXPECT_TRUE(listener.accept().error().closed());
  });
}

TEST_P(TcpCloseTest, EveryCallSaysSoAfterwards) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    Conn& conn = pair.client;
    conn.close();
    conn.close();
    EXPECT_EQ(read_some(conn), "<read: use of a closed connection, listener or file>");
    EXPECT_TRUE(conn.write_all("x").error().closed());
    EXPECT_TRUE(conn.writev_all({}).error().closed());
    EXPECT_TRUE(conn.close_write().error().closed());
    EXPECT_TRUE(conn.set_no_delay(false).error().closed());
    EXPECT_TRUE(conn.set_keep_alive(true).error().closed());
    EXPECT_TRUE(conn.set_linger_zero().error().closed());
    EXPECT_TRUE(conn.local_endpoint().error().closed());
    EXPECT_TRUE(conn.remote_endpoint().error().closed());
    conn.set_deadline(long_ago());
    EXPECT_TRUE(conn.write_all("x").error().closed()) << "closed counts for more than late";
  });
}

TEST_P(TcpCloseTest, ADestroyedConnectionIsAClosedOne) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    {
      const Conn gone = std::move(pair.client);
    }
    EXPECT_EQ(read_some(pair.server), "");
  });
}

// Close from another goroutine at any moment of a busy connection, repeatedly.
TEST_P(TcpCloseTest, AtAnyMomentOfABusyConnection) {
  run_with(GetParam(), [] {
    Listener listener = listen_on_loopback();
    std::mt19937_64 random(seed());
    const std::string block(20'000, 'b');
    for (int round = 0; round < scaled(100); ++round) {
      TcpPair pair = connect(listener);
      std::atomic<int> moved{0};
      const auto read_all = [&moved](Conn& conn) {
        std::array<std::byte, 1024> buffer;
        for (;;) {
          const Result<std::size_t> n = conn.read(buffer);
          if (!n || *n == 0) return;
          ++moved;
        }
      };
      const auto write_for_ever = [&](Conn& conn) {
        while (conn.write_all(block)) {
        }
      };
      WaitGroup group;
      for (Conn* conn : {&pair.client, &pair.server}) {
        group.go([&, conn] { read_all(*conn); });
        group.go([&, conn] { write_for_ever(*conn); });
      }
      const int enough = static_cast<int>(random() % 50);
      yield_until([&] { return moved >= enough; });
      Conn& first = random() % 2 == 0 ? pair.client : pair.server;
      first.close();
      group.wait();  // the peer's calls end, too: by the end of the stream, or a reset
    }
  });
}

}  // namespace
}  // namespace tuza::net::testing
