// Calls with a context: the end of the context ends the wait, and leaves the connection unchanged.
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/wait_group.h>

#include <array>
#include <string>

namespace tuza::net::testing {
namespace {

using namespace std::chrono_literals;

class CancelTest : public WithProcs {};
TUZA_WITH_PROCS(CancelTest);

Error why(int number) { return Error::from_errno(number, "test"); }

TEST_P(CancelTest, AReadEndsWithItsContextAndTheNextOneWorks) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    std::array<char, 16> buffer;
    for (int i = 0; i < 20; ++i) {
      auto [ctx, cancel] = with_cancel(Context::background());
      WaitGroup group;
      group.go([&] {
        const Result<std::size_t> n = pair.server.read(ctx, buffer);
        ASSERT_FALSE(n);
        EXPECT_TRUE(n.error().is(std::errc::io_error));
      });
      if (i % 2 == 0) yield();
      cancel(why(EIO));
      group.wait();
      EXPECT_FALSE(pair.server.read(ctx, buffer)) << "it has ended before";
      ASSERT_TRUE(pair.client.write_all("next"));
      EXPECT_EQ(read_some(pair.server), "next");
    }
  });
}

TEST_P(CancelTest, DeadlinesOfContextsEndCalls) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    std::array<std::byte, 4> four;
    ASSERT_TRUE(pair.client.write_all("ab"));
    auto [ctx, cancel] = with_timeout(Context::background(), 5ms);
    const Result<void> full = pair.server.read_full(ctx, four);
    ASSERT_FALSE(full);
    EXPECT_TRUE(full.error().timeout());
    ASSERT_TRUE(pair.client.write_all("cd"));
    EXPECT_EQ(read_some(pair.server), "cd");
  });
}

TEST_P(CancelTest, AWriteEndsWithItsContextAndItsTimeoutIsGone) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    auto [ctx, cancel] = with_timeout(Context::background(), 5ms);
    pair.client.set_write_timeout(1h);
    const std::string large(std::size_t{32} << 20, 'x');
    const Result<void> sent = pair.client.write_all(ctx, large);
    ASSERT_FALSE(sent);
    EXPECT_TRUE(sent.error().timeout());
    pair.client.close_write().value();
    EXPECT_LT(read_to_end(pair.server).size(), large.size());
    ASSERT_TRUE(pair.server.write_all("still here"));
    EXPECT_EQ(read_some(pair.client), "still here");
  });
}

TEST_P(CancelTest, AcceptAndDialEndToo) {
  run_with(GetParam(), [] {
    Listener listener = listen("tcp", "127.0.0.1:0").value();
    auto [ctx, cancel] = with_timeout(Context::background(), 5ms);
    const Result<Conn> none = listener.accept(ctx);
    ASSERT_FALSE(none);
    EXPECT_TRUE(none.error().timeout());
    EXPECT_TRUE(dial(ctx, "tcp", to_string(listener.endpoint())).error().timeout());
    const Context forever;
    WaitGroup group;
    group.go([&] { EXPECT_TRUE(dial(forever, "tcp", to_string(listener.endpoint()))); });
    EXPECT_TRUE(listener.accept(forever));
    group.wait();
  });
}

// The end of the context, a byte, or the end of the connection: whichever comes first, the call returns, and
// the next user of the descriptor's memory is not disturbed.
TEST_P(CancelTest, RacesWithBytesAndClose) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(300) + 6; ++round) {
      TcpPair pair = tcp_pair();
      auto [ctx, cancel] = with_timeout(Context::background(), std::chrono::microseconds(round % 50 + 1));
      WaitGroup group;
      group.go([&] {
        std::array<char, 4> buffer;
        const Result<std::size_t> n = pair.server.read(ctx, buffer);
        if (n) {
          EXPECT_EQ(*n, 1u);
        } else {
          EXPECT_TRUE(n.error().closed() || n.error().timeout() || n.error().cancelled());
        }
      });
      group.go([&] { (void)pair.client.write_all("x"); });
      if (round % 3 == 0) group.go([&] { pair.server.close(); });
      if (round % 3 == 1) group.go([&cancel = cancel] { cancel(); });
      group.wait();
    }
  });
}

TEST_P(CancelTest, EndsAWaitBehindAnotherReaderOrWriter) {
  run_with(GetParam(), [] {
    LocalPair pair = local_pair();
    WaitGroup group;
    std::byte byte{};
    group.go([&] { EXPECT_TRUE(pair.here->read(std::span(&byte, 1)).error().closed()); });
    fill(*pair.here);
    group.go([&] { EXPECT_TRUE(pair.here->write_all(bytes("more")).error().closed()); });
    wait_until_parked(1, WaitReason::kIoRead);
    wait_until_parked(1, WaitReason::kIoWrite);
    std::byte mine{};
    const auto [ctx, cancel] = with_timeout(Context::background(), 5ms);
    EXPECT_TRUE(pair.here->read(std::span(&mine, 1), &ctx).error().timeout());
    EXPECT_TRUE(pair.here->write_all(bytes("mine"), &ctx).error().timeout());
    pair.here->close();
    group.wait();
  });
}

}  // namespace
}  // namespace tuza::net::testing
