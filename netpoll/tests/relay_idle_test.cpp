// relay() with an idle timeout.
#include <tuza/netpoll/copy.h>
#include <tuza/netpoll/testing.h>
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/sched/time/fake_clock.h>

#include <chrono>
#include <optional>
#include <string>

namespace tuza::net {
namespace {

using namespace testing;
using namespace std::chrono_literals;

class RelayIdleTest : public WithProcs {};
TUZA_WITH_PROCS(RelayIdleTest);

TEST_P(RelayIdleTest, EndsWhenNothingHasMovedInEitherDirection) {
  run_with(GetParam(), [] {
    tuza::testing::FakeClock clock;
    MemoryNetwork network;
    MemoryNetwork::Pair left = network.pair().value(), right = network.pair().value();
    std::optional<Result<Relayed>> relayed;
    WaitGroup group;
    group.go(
        [&] { relayed = relay(Context::background(), left.server, right.client, {.idle_timeout = 60s}); });
    for (int i = 0; i < 10; ++i) {
      Conn& from = i % 2 == 0 ? left.client : right.server;
      Conn& to = i % 2 == 0 ? right.server : left.client;
      sleep_for(59s);
      ASSERT_TRUE(from.write_all("x"));
      ASSERT_EQ(read_some(to), "x") << i;
    }
    const std::chrono::nanoseconds last = clock.elapsed();
    group.wait();
    EXPECT_TRUE(relayed->error().timeout()) << relayed->error().message();
    EXPECT_EQ(relayed->error().message(), "relay idle connections: deadline exceeded");
    EXPECT_GE(clock.elapsed() - last, 60s);
    EXPECT_LE(clock.elapsed() - last, 75s);
    EXPECT_EQ(read_some(left.client), "");
    EXPECT_EQ(read_some(right.server), "");
  });
}

TEST_P(RelayIdleTest, AlsoIfThereIsNoRoomForMore) {
  run_with(GetParam(), [] {
    tuza::testing::FakeClock clock;
    MemoryNetwork network({.buffer_bytes = 1'000});
    MemoryNetwork::Pair left = network.pair().value(), right = network.pair().value();
    WaitGroup group;
    group.go([&] { EXPECT_FALSE(left.client.write_all(std::string(100'000, 'x'))); });
    EXPECT_TRUE(
        relay(Context::background(), left.server, right.client, {.idle_timeout = 60s}).error().timeout());
    group.wait();
  });
}

// In real time: the bytes of sockets are counted elsewhere.
TEST_P(RelayIdleTest, SocketsThatAreInUseStay) {
  run_with(GetParam(), [] {
    TcpPair left = tcp_pair(), right = tcp_pair();
    constexpr auto kIdle = 200ms;
    WaitGroup group;
    group.go([&] {
      const Result<Relayed> relayed =
          relay(Context::background(), left.server, right.client, {.idle_timeout = kIdle});
      EXPECT_TRUE(relayed.error().timeout()) << relayed.error().message();
    });
    std::string much(200'000, 'm');
    const std::string sent = much;
    for (const auto end = tuza::now() + 3 * kIdle; tuza::now() < end; sleep_for(1ms)) {
      WaitGroup writing;
      writing.go([&] { ASSERT_TRUE(left.client.write_all(sent)); });
      ASSERT_TRUE(right.server.read_full(std::as_writable_bytes(std::span(much))));
      writing.wait();
      ASSERT_TRUE(right.server.write_all("x"));
      ASSERT_EQ(read_some(left.client), "x");
    }
    EXPECT_EQ(read_some(left.client), "");
    EXPECT_EQ(read_some(right.server), "");
    group.wait();
  });
}

TEST_P(RelayIdleTest, NothingOfItIsLeftWhenTheRelayEndsBefore) {
  run_with(GetParam(), [] {
    for (int i = 0; i < 100; ++i) {
      TcpPair left = tcp_pair(), right = tcp_pair();
      left.client.close();
      right.server.close();
      (void)relay(Context::background(), left.server, right.client, {.idle_timeout = 1ms});
    }
  });
}

}  // namespace
}  // namespace tuza::net
