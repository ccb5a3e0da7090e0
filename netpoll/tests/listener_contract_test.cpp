// What a Listener promises, and a server over it, over memory and over sockets of loopback alike.
#include <tuza/netpoll/proxy_protocol.h>
#include <tuza/netpoll/serve.h>
#include <tuza/netpoll/tests/ground.h>
#include <tuza/sched/sync/context.h>

#include <array>
#include <string>
#include <vector>

namespace tuza::net::testing {
namespace {

class ListenerContractTest : public OnBothGrounds {};
TUZA_ON_BOTH_GROUNDS(ListenerContractTest);

TEST_P(ListenerContractTest, AClosedListenerAcceptsNothingAndNobodyReachesIt) {
  on_ground([](Ground& ground) {
    Listener listener = ground.listen();
    const std::string address = listener.address();
    WaitGroup group;
    for (int i = 0; i < 3; ++i) group.go([&] { EXPECT_TRUE(listener.accept().error().closed()); });
    wait_until_parked(1, WaitReason::kIoRead);
    wait_until_parked(2, WaitReason::kSemaphore);
    listener.close();
    group.wait();
    EXPECT_TRUE(listener.accept().error().closed());
    EXPECT_TRUE(ground.dial(address).error().is(std::errc::connection_refused));
  });
}

TEST_P(ListenerContractTest, AClosedListenerResetsTheConnectionsThatWait) {
  on_ground([](Ground& ground) {
    Listener listener = ground.listen();
    Conn waiting = ground.dial(listener.address()).value();
    listener.close();
    std::array<std::byte, 1> one{};
    EXPECT_TRUE(waiting.read(one).error().is(std::errc::connection_reset));
  });
}

TEST_P(ListenerContractTest, TheEndOfAContextEndsAnAccept) {
  on_ground([](Ground& ground) {
    Listener listener = ground.listen();
    const auto [ctx, cancel] = with_cancel(Context::background());
    WaitGroup group;
    group.go([&] { EXPECT_EQ(listener.accept(ctx).error().code(), Errc::kCancelled); });
    wait_until_parked(1, WaitReason::kIoRead);
    cancel();
    group.wait();
    TcpPair pair = ground.connect(listener);
    EXPECT_TRUE(pair.client.write_all("x"));
    EXPECT_EQ(read_some(pair.server), "x");
  });
}

TEST_P(ListenerContractTest, AServerServesAndEndsItsIdleConnections) {
  on_ground([](Ground& ground) {
    Server server(ground.listen(), &echo);
    WaitGroup serving;
    serving.go([&] { EXPECT_TRUE(server.serve()); });
    std::vector<Conn> clients;
    for (int i = 0; i < 20; ++i) clients.push_back(ground.dial(server.address()).value());
    for (Conn& client : clients) EXPECT_TRUE(answers(client));
    EXPECT_EQ(server.connections(), clients.size());
    EXPECT_TRUE(server.shutdown(far_away()));
    serving.wait();
    for (Conn& client : clients) EXPECT_EQ(read_some(client), "");
  });
}

TEST_P(ListenerContractTest, AProxySaysWhoTheClientIs) {
  on_ground([](Ground& ground) {
    TcpPair pair = ground.pair();
    ASSERT_TRUE(pair.client.write_all("PROXY TCP4 192.0.2.7 192.0.2.8 1234 80\r\nhello"));
    const Result<ProxyHeader> header = receive_proxy_header(pair.server);
    ASSERT_TRUE(header) << header.error().message();
    EXPECT_EQ(pair.server.remote_address().value(), "192.0.2.7:1234");
    EXPECT_EQ(read_some(pair.server), "hello");
  });
}

}  // namespace
}  // namespace tuza::net::testing
