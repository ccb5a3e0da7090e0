// Dialling names, and hosts that stand for this machine.
#include <tuza/netpoll/socket/socket_name.h>
#include <tuza/netpoll/tests/netpoll_testing.h>

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <tuza/netpoll/tests/fake_resolver.h>
#include <tuza/sched/arch/syscall.h>

#include <array>
#include <cstdio>
#include <fstream>

namespace tuza::net::testing {
namespace {

class DialNameTest : public WithProcs {};
TUZA_WITH_PROCS(DialNameTest);

std::string port_of(const Listener& listener) { return std::to_string(listener.endpoint().port()); }

std::string peer_of(const Result<Conn>& conn) {
  return conn ? conn->remote_endpoint().value().address().to_string() : conn.error().message();
}

// Has a port of 127.0.0.x and refuses connections: it does not listen, and nobody else can.
class Refusing {
 public:
  Refusing(const std::string& host, const std::string& port)
      : address_(parse_endpoint(host + ":" + port).value()),
        fd_(static_cast<int>(sys::invoke(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))) {
    const SocketName name = SocketName::of(address_);
    bound_ = sys::invoke(SYS_bind, fd_, &name.storage, name.length) == 0;
  }
  ~Refusing() { sys::invoke(SYS_close, fd_); }
  Refusing(const Refusing&) = delete;
  Refusing& operator=(const Refusing&) = delete;

  // False: another program has the port.
  bool bound() const { return bound_; }

 protected:
  Endpoint address_;
  int fd_;

 private:
  bool bound_ = false;
};

// Listens, and does not answer: its backlog is full.
class Silent : public Refusing {
 public:
  Silent(const std::string& host, const std::string& port) : Refusing(host, port) {
    EXPECT_TRUE(bound());
    EXPECT_EQ(sys::invoke(SYS_listen, fd_, 0), 0);
    waiting_.push_back(dial("tcp", to_string(address_)).value());
  }

 private:
  std::vector<Conn> waiting_;
};

TEST_P(DialNameTest, OnlyAddressesOfTheNetworkCount) {
  const FakeResolver names({{"dual.test", {.addresses = {"::1", "127.0.0.1"}}},
                            {"six.test", {.addresses = {"::1"}}},
                            {"mapped.test", {.addresses = {"::ffff:127.0.0.1"}}}});
  run_with(GetParam(), [] {
    const Listener listener = listen_on_loopback();
    EXPECT_EQ(peer_of(dial("tcp4", "dual.test:" + port_of(listener))), "127.0.0.1");
    EXPECT_EQ(peer_of(dial("tcp", "dual.test:" + port_of(listener))), "127.0.0.1") << "[::1] refuses";
    EXPECT_EQ(peer_of(dial("tcp", "mapped.test:" + port_of(listener))), "127.0.0.1");
    EXPECT_EQ(peer_of(dial("tcp4", "[::ffff:127.0.0.1]:" + port_of(listener))), "127.0.0.1");
    EXPECT_TRUE(dial("tcp4", "six.test:" + port_of(listener)).error().is(Errc::kNoSuchHost));
    EXPECT_FALSE(dial("tcp6", "dual.test:" + port_of(listener)));
    EXPECT_EQ(listen("tcp4", "dual.test:0").value().endpoint().address().to_string(), "127.0.0.1");
    EXPECT_EQ(listen("tcp", "dual.test:0").value().endpoint().address().to_string(), "127.0.0.1");
  });
}

TEST_P(DialNameTest, EveryAddressIsTried) {
  const FakeResolver names(
      {{"three.test", {.addresses = {"127.0.0.3", "127.0.0.2", "127.0.0.1"}}},
       {"unroutable.test", {.addresses = {"2001:db8::1", "2001:db8::2", "127.0.0.3", "127.0.0.1"}}}});
  run_with(GetParam(), [] {
    const Listener listener = listen_on_loopback();
    EXPECT_EQ(peer_of(dial("tcp", "three.test:" + port_of(listener))), "127.0.0.1");
    const Context background;
    EXPECT_EQ(peer_of(dial(background, "tcp", "three.test:" + port_of(listener))), "127.0.0.1");
    EXPECT_EQ(peer_of(dial("tcp", "unroutable.test:" + port_of(listener), Clock::now() + 20s)), "127.0.0.1");
  });
}

TEST_P(DialNameTest, TheErrorIsThatOfTheFirstAddress) {
  const FakeResolver names({{"two.test", {.addresses = {"127.0.0.2", "127.0.0.1"}}}});
  run_with(GetParam(), [] {
    std::string port;
    {
      const Listener gone = listen_on_loopback();
      port = port_of(gone);
    }
    EXPECT_EQ(dial("tcp", "two.test:" + port).error().message(),
              "dial two.test:" + port + ": Connection refused");
  });
}

// Also if the deadline leaves each address less than the usual delay.
TEST_P(DialNameTest, ASilentAddressDoesNotDelayTheNextBeyondTheDeadline) {
  const FakeResolver names({{"slow.test", {.addresses = {"127.0.0.3", "127.0.0.2", "127.0.0.1"}}}});
  run_with(GetParam(), [] {
    const Listener listener = listen_on_loopback();
    const Silent three("127.0.0.3", port_of(listener)), two("127.0.0.2", port_of(listener));
    const std::string address = "slow.test:" + port_of(listener);
    EXPECT_EQ(peer_of(dial("tcp", address)), "127.0.0.1") << "without a deadline";
    EXPECT_EQ(peer_of(dial("tcp", address, Clock::now() + 400ms)), "127.0.0.1");
    const auto [ctx, cancel] = with_timeout(Context::background(), 400ms);
    EXPECT_EQ(peer_of(dial(ctx, "tcp", address)), "127.0.0.1");
  });
}

TEST_P(DialNameTest, GivesUpAtTheDeadlineOrWithTheContext) {
  const FakeResolver names({{"silent.test", {.addresses = {"127.0.0.3", "127.0.0.2"}}}});
  run_with(GetParam(), [] {
    const Listener listener = listen_on_loopback();
    const Silent three("127.0.0.3", port_of(listener)), two("127.0.0.2", port_of(listener));
    const std::string address = "silent.test:" + port_of(listener);
    EXPECT_EQ(dial("tcp", address, Clock::now() + 20ms).error().message(),
              "dial " + address + ": deadline exceeded");
    EXPECT_TRUE(dial("tcp", address, long_ago()).error().timeout());
    const auto [ctx, cancel] = with_timeout(Context::background(), 20ms, Error(Errc::kCancelled, "mine"));
    EXPECT_EQ(dial(ctx, "tcp", address).error().op(), "mine");
  });
}

TEST_P(DialNameTest, ANameOfFiftyAddresses) {
  std::vector<std::string> refusing, silent(50, "127.0.0.3");
  for (int i = 0; i < 49; ++i) refusing.push_back("127.0.1." + std::to_string(i + 1));
  refusing.emplace_back("127.0.0.1");
  const FakeResolver names(
      {{"refusing.test", {.addresses = refusing}}, {"silent.test", {.addresses = silent}}});
  run_with(GetParam(), [] {
    const Listener listener = listen_on_loopback();
    EXPECT_EQ(peer_of(dial("tcp", "refusing.test:" + port_of(listener))), "127.0.0.1");
    EXPECT_EQ(peer_of(dial("tcp", "refusing.test:" + port_of(listener), Clock::now() + 20s)), "127.0.0.1");
    const Silent three("127.0.0.3", port_of(listener));
    EXPECT_TRUE(dial("tcp", "silent.test:" + port_of(listener), Clock::now() + 20ms).error().timeout());
  });
}

TEST_P(DialNameTest, ATemporaryFailureIsNotAMissingName) {
  const FakeResolver names({{"again.test", {.code = EAI_AGAIN}},
                            {"fail.test", {.code = EAI_FAIL}},
                            {"none.test", {.code = EAI_NONAME}},
                            {"nodata.test", {.code = EAI_NODATA}},
                            {"memory.test", {.code = EAI_MEMORY}}});
  run_with(GetParam(), [] {
    for (const char* name : {"again.test:80", "fail.test:80"}) {
      EXPECT_TRUE(resolve(name).error().is(Errc::kResolverFailed)) << name;
      EXPECT_TRUE(dial("tcp", name).error().is(Errc::kResolverFailed)) << name;
      EXPECT_TRUE(listen("tcp", name).error().is(Errc::kResolverFailed)) << name;
    }
    for (const char* name : {"none.test:80", "nodata.test:80"}) {
      EXPECT_TRUE(dial("tcp6", name).error().is(Errc::kNoSuchHost)) << name;
    }
    EXPECT_TRUE(resolve("memory.test:80").error().is(std::errc::not_enough_memory));
    EXPECT_EQ(resolve("again.test:80").error().message(),
              "resolve again.test:80: no answer from the name servers");
  });
}

TEST_P(DialNameTest, AnUnspecifiedHostIsThisMachine) {
  run_with(GetParam(), [] {
    const Listener v4 = listen_on_loopback();
    for (const char* host : {"", "[::]", "0.0.0.0", "[::ffff:0.0.0.0]"}) {
      for (const char* network : {"tcp", "tcp4"}) {
        EXPECT_EQ(peer_of(dial(network, std::string(host) + ":" + port_of(v4))), "127.0.0.1")
            << network << " " << host;
      }
    }
    const Listener all = listen("tcp", ":0").value();
    EXPECT_TRUE(dial("tcp", all.address())) << all.address();
    // Another program may listen on the same port of 127.0.0.1, which comes first: until one is found that nobody has.
    for (int attempt = 0;; ++attempt) {
      ASSERT_LT(attempt, 100);
      const Result<Listener> v6 = listen("tcp6", "[::1]:0");
      if (!v6) break;
      const Refusing v4_of_the_same("127.0.0.1", port_of(*v6));
      if (!v4_of_the_same.bound()) continue;
      EXPECT_EQ(peer_of(dial("tcp", "[::]:" + port_of(*v6))), "::1");
      EXPECT_EQ(peer_of(dial("tcp", ":" + port_of(*v6))), "::1");
      EXPECT_EQ(peer_of(dial("tcp6", ":" + port_of(*v6))), "::1");
      break;
    }
    EXPECT_TRUE(dial("tcp6", "0.0.0.0:1").error().is(std::errc::address_family_not_supported));
  });
}

// As the kernel lists connections, those included that have been closed and wait. (listen() does not tell: a client of another
// program may have had the port.)
bool is_connected_with_itself(const std::string& loopback_address) {
  std::array<char, 32> end{};
  std::snprintf(end.data(), end.size(), "0100007F:%04X",
                std::stoi(loopback_address.substr(loopback_address.find(':') + 1)));
  const std::string entry = std::string(end.data()) + " " + end.data();
  std::ifstream list("/proc/net/tcp");
  for (std::string line; std::getline(list, line);) {
    if (line.contains(entry)) return true;
  }
  return false;
}

// The system gives every second port to clients of a peer by turns, so that a client dials its own port within half of
// the range.
TEST(DialItself, IsRefused) {
  int low = 0, high = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> low >> high;
  if (low == 0) {  // no /proc: what Linux begins with
    low = 32'768;
    high = 60'999;
  }
  run_with(1, [=] {
    std::string address;
    for (int port = low + ((high - low) / 4 & ~1); address.empty() && port < high; port += 2) {
      const std::string candidate = "127.0.0.1:" + std::to_string(port);
      if (listen("tcp", candidate)) address = candidate;
    }
    ASSERT_FALSE(address.empty());
    for (int i = 0; i < scaled((high - low) / 2 + 1000); ++i) {
      const Result<Conn> conn = dial("tcp", address);
      ASSERT_FALSE(conn) << "the client reads its own bytes, attempt " << i;
      ASSERT_EQ(conn.error().message(), "dial " + address + ": Connection refused");
    }
    EXPECT_FALSE(is_connected_with_itself(address));
  });
}

}  // namespace
}  // namespace tuza::net::testing
