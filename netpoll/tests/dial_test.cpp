// Listening and dialling: addresses, and errors.
#include <tuza/netpoll/socket/socket_name.h>
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/netpoll/tests/raw_socket.h>
#include <tuza/sched/arch/calls.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <tuza/sched/arch/syscall.h>

namespace tuza::net::testing {
namespace {

class DialTest : public WithProcs {};
TUZA_WITH_PROCS(DialTest);

// A listening socket that nobody accepts from, with its backlog full: a dial to it has to wait.
class Unreachable {
 public:
  Unreachable() : fd_(static_cast<int>(sys::invoke(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))) {
    SocketName name = SocketName::of(Endpoint(IpAddress::loopback_v4(), 0));
    EXPECT_EQ(sys::invoke(SYS_bind, fd_, &name.storage, name.length), 0);
    EXPECT_EQ(sys::invoke(SYS_listen, fd_, 0), 0);
    EXPECT_EQ(name.ask(sys::getsockname, fd_), 0);
    address_ = name.endpoint().value();
    // One connection fills a backlog of zero; the next one's SYN is dropped.
    waiting_.push_back(dial("tcp", to_string(address_)).value());
  }
  ~Unreachable() { sys::invoke(SYS_close, fd_); }
  Unreachable(const Unreachable&) = delete;
  Unreachable& operator=(const Unreachable&) = delete;

  [[nodiscard]] std::string address() const { return to_string(address_); }

 private:
  int fd_;
  Endpoint address_;
  std::vector<Conn> waiting_;
};

TEST_P(DialTest, AcceptsInTheOrderOfArrivalAndWaitsForMore) {
  run_with(GetParam(), [] {
    Listener listener = listen_on_loopback();
    const std::string address = to_string(listener.endpoint());
    std::vector<Conn> clients;
    for (int i = 0; i < 20; ++i) clients.push_back(dial("tcp", address).value());
    for (Conn& client : clients) {
      const Conn server = listener.accept().value();
      EXPECT_EQ(to_string(server.remote_endpoint().value()), to_string(client.local_endpoint().value()));
    }
    WaitGroup group;
    group.go([&] { EXPECT_TRUE(listener.accept()); });
    wait_until_parked(1, WaitReason::kIoRead);
    const Result<Conn> client = dial("tcp", address);
    EXPECT_TRUE(client);
    group.wait();
  });
}

// As in Go: clients that know only IPv4 find the listener, and those that try both versions do, too.
TEST_P(DialTest, ANameListensOnItsFirstAddressOfIPv4) {
  run_with(GetParam(), [] {
    Listener listener = listen("tcp", "localhost:0").value();
    EXPECT_EQ(to_string(Endpoint(listener.endpoint().address(), 0)), "127.0.0.1:0");
    EXPECT_TRUE(dial("tcp", to_string(listener.endpoint())));
    EXPECT_TRUE(dial("tcp", "localhost:" + std::to_string(listener.endpoint().port())));
  });
}

TEST_P(DialTest, TheAddressesOfANameAreTriedInTurn) {
  run_with(GetParam(), [] {
    Result<Listener> listener = listen("tcp6", "[::1]:0");
    if (!listener) {  // without IPv6 the error is that of the first address
      EXPECT_EQ(dial("tcp", "localhost:1").error().message(), "dial localhost:1: Connection refused");
      return;
    }
    const Result<Conn> conn = dial("tcp", "localhost:" + std::to_string(listener->endpoint().port()));
    ASSERT_TRUE(conn) << conn.error().message();
    EXPECT_TRUE(conn->remote_endpoint().value().address().is_v6());
  });
}

TEST_P(DialTest, RefusedSaysWhereAndWhy) {
  run_with(GetParam(), [] {
    const std::string& address = refusing_address();
    const Result<Conn> conn = dial("tcp", address);
    ASSERT_FALSE(conn);
    EXPECT_EQ(conn.error().message(), "dial " + address + ": Connection refused");
  });
}

TEST_P(DialTest, GivesUpAtItsDeadline) {
  run_with(GetParam(), [] {
    const Unreachable server;
    const Result<Conn> conn = dial("tcp", server.address(), Clock::now() + 5ms);
    ASSERT_FALSE(conn);
    EXPECT_TRUE(conn.error().timeout()) << conn.error().message();
    EXPECT_EQ(conn.error().message(), "dial " + server.address() + ": deadline exceeded");
    EXPECT_TRUE(dial("tcp", server.address(), long_ago()).error().timeout());
  });
}

TEST_P(DialTest, ItsDeadlineDoesNotOutliveIt) {
  run_with(GetParam(), [] {
    Listener listener = listen_on_loopback();
    const TimePoint deadline = Clock::now() + 200ms;
    Result<Conn> conn = dial("tcp", to_string(listener.endpoint()), deadline);
    if (!conn) {  // the machine stood still
      EXPECT_TRUE(conn.error().timeout());
      return;
    }
    sleep_until(deadline);
    EXPECT_TRUE(conn->write_all("x"));
  });
}

TEST_P(DialTest, ManyAtOnce) {
  run_with(GetParam(), [] {
    Listener listener = listen_on_loopback();
    const std::string address = to_string(listener.endpoint());
    const int count = scaled(200);
    WaitGroup group;
    for (int i = 0; i < count; ++i) {
      group.go([&address, i] {
        Result<Conn> conn = dial("tcp", address);
        ASSERT_TRUE(conn) << conn.error().message();
        const std::string text = std::to_string(i);
        ASSERT_TRUE(conn->write_all(text));
        EXPECT_EQ(read_some(*conn), text);
      });
    }
    for (int i = 0; i < count; ++i) {
      group.go([conn = listener.accept().value()]() mutable {
        const std::string text = read_some(conn);
        EXPECT_TRUE(conn.write_all(text));
        EXPECT_EQ(read_some(conn), "");
      });
    }
    group.wait();
  });
}

TEST(Listen, OnAPortInUseSaysSo) {
  run_with(1, [] {
    const Listener first = listen_on_loopback();
    const std::string address = to_string(first.endpoint());
    const Result<Listener> second = listen("tcp", address);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().message(), "listen " + address + ": Address already in use");
  });
}

TEST(Listen, SharesAPortIfAskedTo) {
  run_with(1, [] {
    const ListenOptions shared{.reuse_port = true};
    const Listener first = listen("tcp", "127.0.0.1:0", shared).value();
    EXPECT_TRUE(listen("tcp", to_string(first.endpoint()), shared));
  });
}

TEST(Listen, OnAPortThatWasJustUsedWorks) {
  run_with(1, [] {
    std::string address;
    {
      Listener listener = listen_on_loopback();
      address = to_string(listener.endpoint());
      TcpPair pair = connect(listener);
      pair.server.close();  // this side is left in TIME_WAIT
      EXPECT_EQ(read_some(pair.client), "");
    }
    EXPECT_TRUE(listen("tcp", address));
  });
}

TEST(Listen, RefusesWhatItDoesNotUnderstand) {
  run_with(1, [] {
    EXPECT_EQ(listen("udp", "127.0.0.1:0").error().message(), "network udp: Protocol not supported");
    EXPECT_EQ(dial("", "127.0.0.1:1").error().message(), "network: Protocol not supported");
    EXPECT_TRUE(listen("tcp", "127.0.0.1").error().is(Errc::kBadAddress));
    EXPECT_TRUE(dial("tcp", "127.0.0.1:port").error().is(Errc::kBadAddress));
    EXPECT_TRUE(listen("tcp6", "127.0.0.1:0").error().is(std::errc::address_family_not_supported));
    EXPECT_TRUE(listen("tcp4", "[::1]:0").error().is(std::errc::address_family_not_supported));
    EXPECT_TRUE(listen("tcp", "192.0.2.1:0").error().is(std::errc::address_not_available));
  });
}

TEST(Listen, OutsideARuntimeIsAnError) {
  EXPECT_TRUE(listen("tcp", "127.0.0.1:0").error().is(Errc::kNotRunning));
  EXPECT_TRUE(dial("tcp", "127.0.0.1:1").error().is(Errc::kNotRunning));
}

// -- IPv6. A container may have none; the test asks the system, and reports it.

bool has_ipv6() {
  const long fd = sys::invoke(SYS_socket, AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const SocketName loopback = SocketName::of(Endpoint(IpAddress::loopback_v6(), 0));
  const bool bound = sys::invoke(SYS_bind, fd, &loopback.storage, loopback.length) == 0;
  sys::invoke(SYS_close, fd);
  return bound;
}

std::string on_port(const char* host, const Listener& listener) {
  return std::string(host) + ":" + std::to_string(listener.endpoint().port());
}

bool reaches(const std::string& address, Listener& listener) {
  Result<Conn> client = dial("tcp", address);
  if (!client) return false;
  Result<Conn> server = listener.accept();
  return server && server->write_all("hello") && read_some(*client) == "hello";
}

TEST(Ipv6, ConnectsOverTheLoopback) {
  run_with(2, [] {
    if (!has_ipv6()) {
      const Result<Listener> refused = listen("tcp", "[::1]:0");
      ASSERT_FALSE(refused) << "the system has no ::1, and yet we listen there";
      std::printf("no IPv6 loopback here: %s\n", refused.error().message().c_str());
      return;
    }
    Listener listener = listen("tcp", "[::1]:0").value();
    EXPECT_TRUE(to_string(listener.endpoint()).starts_with("[::1]:"));
    EXPECT_TRUE(reaches(to_string(listener.endpoint()), listener));
    EXPECT_FALSE(dial("tcp", on_port("127.0.0.1", listener))) << "another address";
  });
}

TEST(Ipv6, ListeningOnEveryAddressMeansBothVersions) {
  run_with(2, [] {
    Listener all = listen("tcp", ":0").value();
    EXPECT_TRUE(reaches(on_port("127.0.0.1", all), all));
    if (has_ipv6()) {
      EXPECT_TRUE(reaches(on_port("[::1]", all), all));
    }
    Listener four = listen("tcp4", ":0").value();
    EXPECT_TRUE(four.endpoint().address().is_v4());
    EXPECT_TRUE(reaches(on_port("127.0.0.1", four), four));
    if (has_ipv6()) {
      Listener six = listen("tcp6", ":0").value();
      EXPECT_TRUE(reaches(on_port("[::1]", six), six));
      EXPECT_FALSE(dial("tcp", on_port("127.0.0.1", six)));
    }
  });
}

// Logs, limits per address and trusted networks see what the client is.
TEST(Ipv6, PeersThatComeByIPv4AreOfIPv4) {
  run_with(2, [] {
    Listener all = listen("tcp", ":0").value();
    const Conn client = dial("tcp", on_port("127.0.0.1", all)).value();
    const Conn server = all.accept().value();
    EXPECT_TRUE(server.remote_endpoint().value().address().is_v4());
    EXPECT_EQ(server.remote_address().value(), client.local_address().value());
    EXPECT_EQ(server.local_address().value(), on_port("127.0.0.1", all));
    EXPECT_TRUE(server.local_endpoint().value().address().is_v4());
  });
}

}  // namespace
}  // namespace tuza::net::testing
