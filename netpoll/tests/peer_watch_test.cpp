// Contexts that end when the peer of a connection goes away.
#include <sys/socket.h>
#include <tuza/netpoll/peer_watch.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/netpoll/tests/netpoll_testing.h>

namespace tuza::net {
namespace {

using namespace testing;

class PeerWatchTest : public WithProcs {};
TUZA_WITH_PROCS(PeerWatchTest);

CancellableContext root() { return with_cancel(Context::background()); }

TEST_P(PeerWatchTest, EndsWhenThePeerGoesAway) {
  run_with(GetParam(), [] {
    using End = void (*)(Conn&);
    const std::array<End, 3> ends{[](Conn& conn) { conn.close(); },
                                  [](Conn& conn) {
                                    EXPECT_TRUE(conn.set_linger_zero());
                                    conn.close();
                                  },
                                  [](Conn& conn) { EXPECT_TRUE(conn.close_write()); }};
    for (const End end : ends) {
      TcpPair pair = tcp_pair();
      PeerWatch watch(pair.server, root());
      EXPECT_TRUE(pair.client.write_all("unread"));  // does not hide the end
      EXPECT_FALSE(watch.context().done());
      end(pair.client);
      watch.context().wait();
      EXPECT_EQ(watch.context().cause().code(), Errc::kClosed);
    }
  });
}

TEST_P(PeerWatchTest, EndsAtOnceIfThePeerHadGone) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    EXPECT_TRUE(pair.client.write_all("last words"));
    pair.client.close();
    EXPECT_EQ(read_to_end(pair.server), "last words");
    PeerWatch watch(pair.server, root());
    watch.context().wait();
  });
}

// Its event has come before the watch, and nothing comes after it.
TEST_P(PeerWatchTest, EndsAtOnceIfThePeerHadGoneBehindUnreadBytes) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair(), later = tcp_pair();
    EXPECT_TRUE(pair.client.write_all("unread"));
    pair.client.close();
    WaitGroup group;
    group.go([&later] { EXPECT_EQ(read_some(later.server), "x"); });
    wait_until_parked(1, WaitReason::kIoRead);
    EXPECT_TRUE(later.client.write_all("x"));
    group.wait();
    PeerWatch watch(pair.server, root());
    watch.context().wait();
    EXPECT_EQ(watch.context().cause().code(), Errc::kClosed);
  });
}

// Some systems report the end of this side, too.
TEST_P(PeerWatchTest, GoesOnWhenOnlyThisSideHasEnded) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    PeerWatch watch(pair.client, root());
    EXPECT_TRUE(pair.client.close_write());
    EXPECT_EQ(read_some(pair.server), "");
    EXPECT_TRUE(pair.server.write_all("x"));
    EXPECT_EQ(read_some(pair.client), "x");
    EXPECT_FALSE(watch.context().done());
    pair.server.close();
    watch.context().wait();
  });
}

TEST_P(PeerWatchTest, EndsWhenTheConnectionIsClosedHere) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    PeerWatch watch(pair.server, root());
    go([&] { pair.server.close(); });
    watch.context().wait();
    EXPECT_EQ(watch.context().cause().code(), Errc::kClosed);
    PeerWatch late(pair.server, root());
    late.context().wait();
  });
}

TEST_P(PeerWatchTest, EndsWithItself) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    Context ctx;
    for (int i = 0; i < 3; ++i) {  // one watch after another
      const PeerWatch watch(pair.server, root());
      ctx = watch.context();
      EXPECT_FALSE(ctx.done());
      EXPECT_TRUE(pair.client.write_all("x"));
      EXPECT_EQ(read_some(pair.server), "x");
    }
    EXPECT_EQ(ctx.cause().code(), Errc::kCancelled);
    pair.client.close();
    EXPECT_EQ(read_to_end(pair.server), "");
  });
}

// An event that was looked up before the descriptor was recycled is none of the next connection's.
TEST_P(PeerWatchTest, AnEventOfAnEarlierConnectionDoesNotEndIt) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    PeerWatch watch(pair.server, root());
    Descriptor& descriptor = detail::ConnParts::descriptor(pair.server);
    const std::uint64_t earlier = descriptor.cookie() - (std::uint64_t{1} << 32);
    (void)descriptor.deliver({false, false, true}, earlier);
    for (int i = 0; i < 100; ++i) yield();
    EXPECT_FALSE(watch.context().done());
    (void)descriptor.deliver({false, false, true}, descriptor.cookie());
    watch.context().wait();
  });
}

// A goroutine that the end of tuza::run leaves behind keeps its watch; the connection may end later.
TEST_P(PeerWatchTest, MayBeLeftBehind) {
  std::optional<TcpPair> pair;
  const auto leave_behind = [&] {
    pair.emplace(tcp_pair());
    go([&pair] {
      PeerWatch watch(pair->server, root());
      Context::background().wait();
    });
    wait_until_all_park();
  };
  run(RunOptions{.max_procs = GetParam()}, leave_behind);
  pair.reset();  // outside of tuza::run
  run(RunOptions{.max_procs = GetParam()}, leave_behind);
  run_with(GetParam(), [&] {
    pair.reset();
    Listener listener = listen_on_loopback();  // waits for I/O, and is not taken for deadlocked
    WaitGroup group;
    group.go([&] { EXPECT_TRUE(listener.accept()); });
    wait_until_all_park();
    EXPECT_TRUE(dial("tcp", listener.address()));
    group.wait();
  });
}

// The watch ends while the peer goes: by turns one is first.
TEST_P(PeerWatchTest, TheEndOfTheWatchRacesWithThePeer) {
  run_with(GetParam(), [] {
    Listener listener = listen_on_loopback();
    for (int i = 0; i < 300; ++i) {
      TcpPair pair = connect(listener);
      Context ctx;
      WaitGroup group;
      {
        const PeerWatch watch(pair.server, root());
        ctx = watch.context();
        group.go([&pair] { pair.client.close(); });
        for (int j = 0; j < i % 20; ++j) yield();
      }
      EXPECT_TRUE(ctx.done());
      group.wait();
    }
  });
}

}  // namespace
}  // namespace tuza::net
