// What only connections in memory have: limited buffers of a known size, errors by order, fake time.
#include <tuza/netpoll/peer_watch.h>
#include <tuza/netpoll/testing.h>
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/netpoll/tls.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/time/fake_clock.h>

#include <array>
#include <optional>
#include <string>

namespace tuza::net::testing {
namespace {

class MemoryNetworkTest : public WithProcs {};
TUZA_WITH_PROCS(MemoryNetworkTest);

MemoryNetwork::Pair memory_pair(std::size_t buffer_bytes = 64 << 10) {
  MemoryNetwork network({.buffer_bytes = buffer_bytes});
  return network.pair().value();  // outlives its network
}

TEST_P(MemoryNetworkTest, ABufferHoldsAsManyBytesAsItsOptionSays) {
  run_with(GetParam(), [] {
    for (const std::size_t size : {std::size_t{1}, std::size_t{7}, std::size_t{4096}}) {
      MemoryNetwork::Pair pair = memory_pair(size);
      EXPECT_EQ(pair.client.try_write(std::string(size + 1, 'x')).value(), size);
      EXPECT_EQ(pair.client.try_write("y").value(), 0u);
      WaitGroup group;
      group.go([&] { EXPECT_TRUE(pair.client.write_all("yz")); });
      wait_until_parked(1, WaitReason::kIoWrite);
      EXPECT_EQ(read_some(pair.server, 1), "x") << "room for one";
      std::string rest;
      while (rest.size() < size + 1) rest += read_some(pair.server);
      EXPECT_EQ(rest, std::string(size - 1, 'x') + "yz");
      group.wait();
    }
  });
}

TEST_P(MemoryNetworkTest, AddressesAreThoseAskedForOrChosen) {
  run_with(GetParam(), [] {
    MemoryNetwork network;
    std::optional<Listener> first = network.listen("10.0.0.1:80").value();
    EXPECT_EQ(first->address(), "10.0.0.1:80");
    EXPECT_TRUE(network.listen("10.0.0.1:80").error().is(std::errc::address_in_use));
    const Listener other = network.listen("[2001:db8::1]:80").value();
    const Listener chosen = network.listen().value();
    const Listener next = network.listen().value();
    EXPECT_EQ(chosen.endpoint().address().to_string(), "127.0.0.1");
    EXPECT_NE(chosen.endpoint().port(), next.endpoint().port());
    EXPECT_TRUE(network.listen("host.example:80").error().is(Errc::kBadAddress));
    EXPECT_TRUE(network.dial("10.0.0.1:81").error().is(std::errc::connection_refused));
    EXPECT_TRUE(network.dial("10.0.0.1:80"));
    first.reset();
    EXPECT_TRUE(network.dial("10.0.0.1:80").error().is(std::errc::connection_refused));
    EXPECT_TRUE(network.listen("10.0.0.1:80")) << "free again";
    MemoryNetwork another;
    EXPECT_TRUE(another.dial(other.address()).error().is(std::errc::connection_refused));
    const auto [ctx, cancel] = with_cancel(Context::background());
    cancel();
    EXPECT_EQ(network.dial(ctx, other.address()).error().code(), Errc::kCancelled);
  });
}

TEST_P(MemoryNetworkTest, AReadFailsAsOrderedAndTheNextOneGoesOn) {
  run_with(GetParam(), [] {
    MemoryNetwork::Pair pair = memory_pair();
    fail_read(pair.server, std::make_error_code(std::errc::host_unreachable), 3);
    ASSERT_TRUE(pair.client.write_all("abcdef"));
    EXPECT_EQ(read_some(pair.server), "abc");
    std::array<std::byte, 8> some{};
    EXPECT_TRUE(pair.server.read(some).error().is(std::errc::host_unreachable));
    EXPECT_EQ(read_some(pair.server), "def");
    WaitGroup group;
    group.go([&] { EXPECT_TRUE(pair.server.read(some).error().is(std::errc::io_error)); });
    wait_until_parked(1, WaitReason::kIoRead);
    fail_read(pair.server, std::make_error_code(std::errc::io_error));
    group.wait();
    ASSERT_TRUE(pair.client.write_all("g"));
    EXPECT_EQ(read_some(pair.server), "g");
  });
}

TEST_P(MemoryNetworkTest, AWriteFailsAsOrderedBehindTheBytesBefore) {
  run_with(GetParam(), [] {
    MemoryNetwork::Pair pair = memory_pair();
    fail_write(pair.client, std::make_error_code(std::errc::network_down), 4);
    EXPECT_TRUE(pair.client.write_all("abcdef").error().is(std::errc::network_down));
    EXPECT_EQ(read_some(pair.server), "abcd");
    ASSERT_TRUE(pair.client.write_all("ef"));
    EXPECT_EQ(read_some(pair.server), "ef");
    ASSERT_TRUE(pair.client.write_all(std::string(64 << 10, 'x')));
    WaitGroup group;
    group.go([&] { EXPECT_TRUE(pair.client.write_all("y").error().is(std::errc::io_error)); });
    wait_until_parked(1, WaitReason::kIoWrite);
    fail_write(pair.client, std::make_error_code(std::errc::io_error));
    group.wait();
  });
}

TEST_P(MemoryNetworkTest, AnAcceptFailsAsOrderedAndTheConnectionStillWaits) {
  run_with(GetParam(), [] {
    MemoryNetwork network;
    Listener listener = network.listen().value();
    Conn client = network.dial(listener.address()).value();
    network.fail_accepts(listener.address(), std::make_error_code(std::errc::too_many_files_open), 2);
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(listener.accept().error().is(std::errc::too_many_files_open));
    Conn server = listener.accept().value();
    EXPECT_EQ(server.remote_endpoint().value(), client.local_endpoint().value());
    WaitGroup group;
    group.go([&] { EXPECT_TRUE(listener.accept().error().is(std::errc::invalid_seek)); });
    wait_until_parked(1, WaitReason::kIoRead);
    network.fail_accepts(listener.address(), std::make_error_code(std::errc::invalid_seek));
    group.wait();
  });
}

// As with sockets: one client learns at once that it is not served, and the others wait.
TEST_P(MemoryNetworkTest, AServerWithoutDescriptorsTurnsOneClientAwayAndServesTheNext) {
  run_with(GetParam(), [] {
    tuza::testing::FakeClock clock;  // the server pauses
    MemoryNetwork network;
    Server server(network.listen().value(), &echo);
    network.fail_accepts(server.address(), std::make_error_code(std::errc::too_many_files_open));
    Conn first = network.dial(server.address()).value();
    Conn second = network.dial(server.address()).value();
    WaitGroup serving;
    serving.go([&] { EXPECT_TRUE(server.serve()); });
    EXPECT_EQ(read_some(first), "");
    EXPECT_TRUE(answers(second));
    server.shutdown(time_after_now(1h));
    serving.wait();
  });
}

TEST_P(MemoryNetworkTest, DeadlinesAreTimesOfAFakeClockAndExact) {
  run_with(GetParam(), [] {
    tuza::testing::FakeClock clock;
    MemoryNetwork::Pair pair = memory_pair();
    pair.server.set_read_deadline(time_after_now(1h));
    EXPECT_EQ(read_some(pair.server), "<read: deadline exceeded>");
    EXPECT_EQ(clock.elapsed(), 1h);
    pair.server.set_read_deadline(tuza::now() + 30s);
    pair.server.set_read_deadline(tuza::now() + 2h);  // moved later, without another timer
    EXPECT_EQ(read_some(pair.server), "<read: deadline exceeded>");
    EXPECT_EQ(clock.elapsed(), 3h);
    pair.server.set_read_deadline(tuza::now());
    EXPECT_EQ(read_some(pair.server), "<read: deadline exceeded>");
    EXPECT_EQ(clock.elapsed(), 3h) << "at once";
    pair.server.set_read_deadline(tuza::now() + 10s);
    WaitGroup group;
    group.go([&] { EXPECT_EQ(read_some(pair.server), "in time"); });
    clock.advance(9s);
    ASSERT_TRUE(pair.client.write_all("in time"));
    group.wait();
    pair.client.set_write_timeout(90s);
    ASSERT_TRUE(pair.client.write_all(std::string(64 << 10, 'x')));
    EXPECT_TRUE(pair.client.write_all("y").error().timeout());
    EXPECT_EQ(clock.elapsed(), 3h + 9s + 90s);
  });
}

TEST_P(MemoryNetworkTest, APeerThatIsTooSlowIsGivenUpByTheRateItHadToKeep) {
  run_with(GetParam(), [] {
    tuza::testing::FakeClock clock;
    MemoryNetwork::Pair pair = memory_pair(1'000);
    pair.client.set_write_rate_min(100);
    pair.client.set_write_timeout(10s);
    WaitGroup group;
    // 10 bytes a second: a wait of 1 s is paid for to a tenth.
    group.go([&] {
      for (std::string got = "x"; !got.empty() && !got.starts_with("<");) {
        sleep_for(1s);
        got = read_some(pair.server, 10);
      }
    });
    EXPECT_TRUE(pair.client.write_all(std::string(100'000, 'x')).error().timeout());
    EXPECT_GE(clock.elapsed(), 10s);
    EXPECT_LE(clock.elapsed(), 13s);
    pair.client.close();
    pair.server.close();
    group.wait();
  });
}

// A request that runs has a watch, and must not hold fake time up.
TEST_P(MemoryNetworkTest, APeerWatchDoesNotHoldAFakeClockUp) {
  run_with(GetParam(), [] {
    tuza::testing::FakeClock clock;
    MemoryNetwork::Pair pair = memory_pair();
    const PeerWatch watch(pair.server, with_timeout(Context::background(), 1h));
    watch.context().wait();
    EXPECT_EQ(clock.elapsed(), 1h);
    EXPECT_EQ(watch.context().cause().code(), Errc::kTimeout);
  });
}

// Their time cannot be faked: what remains on the fake clock is what passes.
TEST_P(MemoryNetworkTest, ADeadlineOfASocketIsKeptInRealTimeBesideAFakeClock) {
  run_with(GetParam(), [] {
    tuza::testing::FakeClock clock;
    clock.advance(1000h);  // a deadline of this clock lies that far ahead in real time
    TcpPair pair = tcp_pair();
    pair.server.set_read_deadline(time_after_now(2ms));
    EXPECT_EQ(read_some(pair.server), "<read: deadline exceeded>");
    EXPECT_EQ(clock.elapsed(), 1000h) << "the clock stands still while a goroutine waits for I/O";
    pair.server.set_read_deadline(tuza::now());
    EXPECT_EQ(read_some(pair.server), "<read: deadline exceeded>");
    pair.server.set_read_deadline(tuza::now() + 1h);
    ASSERT_TRUE(pair.client.write_all("x"));
    EXPECT_EQ(read_some(pair.server), "x");
  });
}

TEST(MemoryNetworkEndTest, GoroutinesThatWaitForEachOtherAreADeadlock) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(run([] {
                MemoryNetwork::Pair pair = memory_pair();
                std::array<std::byte, 1> one{};
                (void)pair.server.read(one);
                return 0;
              }),
              ::testing::ExitedWithCode(2), "all goroutines are asleep - deadlock!");
}

TEST(MemoryNetworkEndTest, AnErrorByOrderIsForMemoryOnly) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_DEATH(run([] {
                 TcpPair pair = tcp_pair();
                 fail_read(pair.client, std::make_error_code(std::errc::io_error));
                 return 0;
               }),
               "connections in memory");
}

TEST_P(MemoryNetworkTest, TlsInMemoryIsRefused) {
  run_with(GetParam(), [] {
    MemoryNetwork::Pair pair = memory_pair();
    const auto client = TlsClient::load({}).value();
    EXPECT_TRUE(client->start(std::move(pair.client), "example.org").error().is(std::errc::invalid_argument));
  });
}

// A goroutine that the end of a run leaves in a wait holds nothing back for the next run.
TEST_P(MemoryNetworkTest, AConnectionServesAgainAfterARunThatHasLeftItsUsersBehind) {
  std::optional<MemoryNetwork::Pair> pair;
  run(RunOptions{.max_procs = GetParam()}, [&] {
    pair = memory_pair(16);
    go([&] { (void)read_some(pair->server); });
    go([&] { (void)pair->server.write_all("more than sixteen bytes"); });
    wait_until_parked(1, WaitReason::kIoRead);
    wait_until_parked(1, WaitReason::kIoWrite);
    return 0;
  });
  run_with(GetParam(), [&] {
    EXPECT_EQ(read_some(pair->client), "more than sixtee");
    ASSERT_TRUE(pair->client.write_all("hello"));
    EXPECT_EQ(read_some(pair->server), "hello");
    pair->server.set_read_deadline(time_after_now(1ms));
    EXPECT_EQ(read_some(pair->server), "<read: deadline exceeded>");
    pair.reset();
  });
}

}  // namespace
}  // namespace tuza::net::testing
