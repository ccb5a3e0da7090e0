// Who must go, and who may come, when a server has as many connections as it may have.
#include <tuza/netpoll/detail/address_counts.h>
#include <tuza/netpoll/serve.h>
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/sched/time/sleep.h>

#include <optional>
#include <string>
#include <vector>

namespace tuza::net::testing {
namespace {

class ServeRoomTest : public WithProcs {};
TUZA_WITH_PROCS(ServeRoomTest);

struct RoomServer {
  RoomServer(Server::Handler handler, const ServeOptions& options)
      : server(listen_on_loopback(), std::move(handler), options) {
    serving.go([this] { EXPECT_TRUE(server.serve()); });
  }
  ~RoomServer() {
    server.shutdown(Clock::now());
    serving.wait();
  }
  Conn dial() const { return net::dial("tcp", to_string(server.endpoint())).value(); }

  Server server;
  WaitGroup serving;
};

TEST_P(ServeRoomTest, TheConnectionThatHasBeenIdleForLongestGoes) {
  run_with(GetParam(), [] {
    RoomServer running(&echo, {.max_connections = 3});
    std::vector<Conn> clients;
    for (int i = 0; i < 3; ++i) clients.push_back(running.dial());
    // The clock that notes how long a session has been idle is coarse.
    for (const int i : {1, 0, 2}) {
      ASSERT_TRUE(answers(clients[static_cast<std::size_t>(i)]));
      sleep_for(30ms);
    }
    Conn fresh = running.dial();
    EXPECT_TRUE(answers(fresh));
    EXPECT_EQ(read_some(clients[1]), "") << "it was idle for longest";
    EXPECT_TRUE(answers(clients[0]));
    EXPECT_TRUE(answers(clients[2]));
    EXPECT_LE(running.server.connections(), 3u);
  });
}

TEST_P(ServeRoomTest, ABusyConnectionStays) {
  run_with(GetParam(), [] {
    // Its handler never says that it is idle.
    RoomServer running(
        [](Session& session) {
          for (std::string got; !(got = read_some(session.conn())).empty();) {
            if (!session.conn().write_all(got)) return;
          }
        },
        {.max_connections = 1});
    std::optional<Conn> first = running.dial();
    ASSERT_TRUE(answers(*first));
    Conn second = running.dial();
    ASSERT_TRUE(second.write_all("hello"));
    sleep_for(100ms);
    ASSERT_TRUE(answers(*first));
    first.reset();
    EXPECT_EQ(read_some(second), "hello");
  });
}

TEST_P(ServeRoomTest, AnAddressHasAsManyConnectionsAsItMay) {
  run_with(GetParam(), [] {
    RoomServer running(&echo, {.connections_per_address_max = 2});
    std::optional<Conn> first = running.dial();
    Conn second = running.dial();
    ASSERT_TRUE(answers(*first));
    ASSERT_TRUE(answers(second));
    Conn third = running.dial();
    EXPECT_NE(third.write_all("hello") ? read_some(third) : "", "hello");
    EXPECT_TRUE(answers(*first));
    first.reset();
    tuza::testing::yield_until([&] { return running.server.connections() == 1; });
    Conn fourth = running.dial();
    EXPECT_TRUE(answers(fourth));
  });
}

Endpoint endpoint(const char* address, std::uint16_t port) {
  return {IpAddress::parse(address).value(), port};
}

TEST(AddressCounts, CountAnIpv4AddressOrAnIpv6Network) {
  AddressCounts counts(1);
  auto v4 = counts.try_hold(endpoint("192.0.2.1", 1));
  ASSERT_TRUE(v4);
  EXPECT_FALSE(counts.try_hold(endpoint("192.0.2.1", 2)));
  EXPECT_FALSE(counts.try_hold(endpoint("::ffff:192.0.2.1", 3))) << "the same, through a socket of IPv6";
  EXPECT_TRUE(counts.try_hold(endpoint("192.0.2.2", 1)));
  const auto v6 = counts.try_hold(endpoint("2a00:1:2:3::1", 1));
  ASSERT_TRUE(v6);
  EXPECT_FALSE(counts.try_hold(endpoint("2a00:1:2:3:ffff::2", 1)));
  EXPECT_TRUE(counts.try_hold(endpoint("2a00:1:2:4::1", 1)));
  {
    const AddressCounts::Held moved = std::move(*v4);
    EXPECT_FALSE(counts.try_hold(endpoint("192.0.2.1", 1)));
  }
  EXPECT_TRUE(counts.try_hold(endpoint("192.0.2.1", 1))) << "it has been released";
  AddressCounts none(0);
  std::vector<AddressCounts::Held> many;
  for (int i = 0; i < 10; ++i) many.push_back(none.try_hold(endpoint("192.0.2.1", 1)).value());
}

}  // namespace
}  // namespace tuza::net::testing
