// Out of descriptors: the server survives, does not spin, reports it once a second, and recovers.
#include <tuza/netpoll/serve.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/netpoll/socket/socket_name.h>
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/netpoll/tests/no_more_descriptors.h>
#include <tuza/sched/arch/calls.h>

#include <sys/socket.h>
#include <sys/syscall.h>
#include <tuza/sched/arch/syscall.h>
#include <tuza/sched/log.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>

namespace tuza::net::testing {
namespace {

class ServeLimitsTest : public WithProcs {};
TUZA_WITH_PROCS(ServeLimitsTest);

// A client whose socket exists already, so that it can connect when no descriptors are left.
class EarlyClient {
 public:
  EarlyClient()
      : conn_(detail::ConnParts::make(detail::DescriptorOwner(
            Descriptor::open(static_cast<int>(sys::invoke(SYS_socket, AF_INET,
                                                          SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
                             "test")
                .value()))) {}

  // The system completes the connection; whether the server ever accepts it is a separate question.
  void connect(const Endpoint& to) {
    const SocketName name = SocketName::of(to);
    (void)detail::ConnParts::descriptor(conn_).control(
        "connect", [&name](int fd) { return sys::connect(fd, name.address(), name.length); });
  }
  // What the server sent: "" or an error if it has rejected this client.
  bool is_turned_away() {
    const std::string got = read_some(conn_);
    return got.empty() || got.starts_with("<read: Connection reset");
  }
  bool is_served() { return conn_.write_all("hello") && read_some(conn_) == "hello"; }

 private:
  Conn conn_;
};

std::atomic<int> g_lines{0};

// Counts the accept loop's log lines for a scope.
class CountLines {
 public:
  CountLines() {
    g_lines = 0;
    set_log_sink([](LogLevel, std::string_view line) {
      if (line.find("new connections wait") != std::string_view::npos) ++g_lines;
    });
  }
  ~CountLines() { set_log_sink(nullptr); }
  CountLines(const CountLines&) = delete;
  CountLines& operator=(const CountLines&) = delete;
};

// Its connections are never idle, and none of them goes for a new one.
void busy_echo(Session& session) {
  for (std::string got; !(got = read_some(session.conn())).empty();) {
    if (got.starts_with("<") || !session.conn().write_all(got)) return;
  }
}

// Echoes, with room for more connections than there are descriptors.
struct EchoServer {
  explicit EchoServer(Server::Handler how)
      : server(listen_on_loopback(), std::move(how), {.max_connections = 1000}) {
    serving.go([this] { EXPECT_TRUE(server.serve()); });
  }
  void end() {
    EXPECT_TRUE(server.shutdown(far_away()));
    serving.wait();
  }

  CountLines lines;
  Server server;
  WaitGroup serving;
};

TEST_P(ServeLimitsTest, OutOfDescriptorsItServesOpenConnectionsAndRecovers) {
  run_with(GetParam(), [] {
    EchoServer running(&busy_echo);
    Server& server = running.server;
    Conn old = dial("tcp", to_string(server.endpoint())).value();
    ASSERT_TRUE(answers(old));
    std::vector<EarlyClient> clients(6);
    const TimePoint begin = Clock::now();
    {
      NoMoreDescriptors limit;
      for (std::size_t i = 0; i + 2 < clients.size(); ++i) {
        clients[i].connect(server.endpoint());
        EXPECT_TRUE(clients[i].is_turned_away()) << "it must not be left in the dark";
        EXPECT_TRUE(answers(old));
      }
      limit.free_some(1);
      clients[4].connect(server.endpoint());
      EXPECT_TRUE(clients[4].is_served());
      clients[5].connect(server.endpoint());
      EXPECT_TRUE(clients[5].is_turned_away()) << "there was room for one";
    }
    Conn fresh = dial("tcp", to_string(server.endpoint())).value();
    EXPECT_TRUE(answers(fresh));
    EXPECT_TRUE(answers(old));
    for (Conn* conn : {&old, &fresh}) conn->close();
    clients.clear();
    running.end();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin).count();
    EXPECT_LE(g_lines, seconds + 1) << "at most one line a second";
  });
}

TEST_P(ServeLimitsTest, AConnectionThatEndsMakesRoomForOneThatWaits) {
  run_with(GetParam(), [] {
    EchoServer running(&echo);
    Server& server = running.server;
    std::vector<EarlyClient> first(3), second(3);
    for (EarlyClient& client : first) {
      client.connect(server.endpoint());
      ASSERT_TRUE(client.is_served());
    }
    const NoMoreDescriptors limit;
    first.clear();
    yield_until([&] { return server.connections() == 0; });
    for (EarlyClient& client : second) {
      client.connect(server.endpoint());
      EXPECT_TRUE(client.is_served());
    }
    second.clear();
    running.end();
  });
}

TEST_P(ServeLimitsTest, ItSaysThatItIsOutOfDescriptors) {
  run_with(GetParam(), [] {
    EchoServer running(&busy_echo);
    Server& server = running.server;
    Conn old = dial("tcp", to_string(server.endpoint())).value();
    ASSERT_TRUE(answers(old));
    std::vector<EarlyClient> clients(12);
    const NoMoreDescriptors limit;
    // An earlier test of this process may have used up the line of this second; but the pauses, doubled each
    // time, add up to more than a second.
    for (EarlyClient& client : clients) {
      if (g_lines > 0) break;
      client.connect(server.endpoint());
      EXPECT_TRUE(client.is_turned_away());
    }
    EXPECT_EQ(g_lines, 1);
    old.close();
    running.end();  // not kept up by the pause of the accept loop
  });
}

TEST_P(ServeLimitsTest, OutOfDescriptorsIdleConnectionsGo) {
  run_with(GetParam(), [] {
    std::atomic<int> turns = 0;  // which a session has announced to be idle before
    EchoServer running([&turns](Session& session) {
      for (std::string got; session.begin_idle();) {
        ++turns;
        got = read_some(session.conn());
        session.end_idle();
        if (got.empty() || got.starts_with("<") || !session.conn().write_all(got)) return;
      }
    });
    Server& server = running.server;
    std::vector<EarlyClient> clients(5);
    clients[0].connect(server.endpoint());
    ASSERT_TRUE(clients[0].is_served());
    const NoMoreDescriptors limit;
    bool served = true;
    for (std::size_t i = 1; i < clients.size() && served; ++i) {
      yield_until([&] { return turns == 2 * static_cast<int>(i); });
      clients[i].connect(server.endpoint());
      EXPECT_TRUE(served = clients[i].is_served()) << "the one before it is idle";
    }
    EXPECT_TRUE(served && clients[0].is_turned_away());
    EXPECT_LE(server.connections(), 2u);
    EXPECT_GE(server.stats().made_room, 3u);
    running.end();
  });
}

TEST(ServeLimits, AcceptReportsThatThereAreNoDescriptorsAndLosesNobody) {
  run_with(1, [] {
    Listener listener = listen_on_loopback();
    EarlyClient client;
    client.connect(listener.endpoint());
    {
      const NoMoreDescriptors limit;
      EXPECT_TRUE(listener.accept().error().is(std::errc::too_many_files_open));
      EXPECT_TRUE(dial("tcp", to_string(listener.endpoint())).error().is(std::errc::too_many_files_open));
      EXPECT_TRUE(listen("tcp", "127.0.0.1:0").error().is(std::errc::too_many_files_open));
    }
    EXPECT_TRUE(listener.accept()) << "it has waited in the backlog";
  });
}

}  // namespace
}  // namespace tuza::net::testing
