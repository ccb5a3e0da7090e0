// The system calls of TLS connections, refused; see refused_calls_test.cpp.
#include <tuza/netpoll/tests/refused_testing.h>
#include <tuza/netpoll/tests/tls_testing.h>

#include <ostream>

namespace tuza::net::testing {
namespace {

struct TlsCall {
  const char* name;
  int number;
  int error;
  bool now_and_then;
  const char* fails = kOk;  // the operation of a client that connects, talks and closes
};
std::ostream& operator<<(std::ostream& out, const TlsCall& call) { return out << call.name; }

const TlsCall kCalls[] = {
    // Also what has arrived when the client closes, which no caller requests.
    {"recvfrom", SYS_recvfrom, EPERM, false, "tls handshake"},
    {"recvfrom_interrupted", SYS_recvfrom, EINTR, true},
    {"sendto", SYS_sendto, ENOBUFS, false, "tls handshake"},
    {"sendto_interrupted", SYS_sendto, EINTR, true},
    {"shutdown", SYS_shutdown, EPERM, false, "shutdown"},
    // No caller requests this: how much of the answer is on its way.
    {"ioctl", SYS_ioctl, EPERM, false},
};

class TlsRefusedCalls : public TlsTest, public ::testing::WithParamInterface<TlsCall> {
 protected:
  static std::string talk(TlsClient& client, const std::string& address) {
    const auto told = [](const Error& error) { return who_failed(error, GetParam().error); };
    Result<Conn> conn = client.dial("tcp", address);
    if (!conn) return told(conn.error());
    if (Result<void> sent = conn->write_all("hello"); !sent) return told(sent.error());
    if (const std::string got = read_some(*conn); got != "hello") return got;
    if (Result<void> ended = conn->close_write(); !ended) return told(ended.error());
    return read_to_end(*conn) + kOk;
  }

  void talk_without() {
    RefusedCalls kernel(GetParam().number, GetParam().error);
    run(RunOptions{.max_procs = 2}, [&] {
      const auto client = TlsClient::load(client_options()).value();
      Listener listener = listen_on_loopback();
      listener.use_tls(TlsServer::load(server_options()).value());
      Server server(listener, &echo);
      WaitGroup group;
      group.go([&server] { EXPECT_TRUE(server.serve()); });
      EXPECT_EQ(talk(*client, listener.address()), kOk);
      GetParam().now_and_then ? kernel.refuse_now_and_then() : kernel.refuse_from_now_on();
      for (int i = 0; i < 3; ++i) EXPECT_EQ(talk(*client, listener.address()), GetParam().fails);
      server.shutdown(Clock::now());
      group.wait();
      expect_life(nullptr, kernel);
    });
    end_child(kernel);
  }
};
INSTANTIATE_TEST_SUITE_P(Each, TlsRefusedCalls, ::testing::ValuesIn(kCalls),
                         [](const auto& c) { return std::string(c.param.name); });

TEST_P(TlsRefusedCalls, TheCallerGetsAnErrorAndTheOthersKeepRunning) {
  const Ended ended = tuza::testing::in_fork([this] { talk_without(); });
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}

TEST_F(TlsTest, AFileThatCannotBeOpenedIsNamed) {
  const Ended ended = tuza::testing::in_fork([this] {
    RefusedCalls kernel(SYS_openat, EMFILE);
    run(RunOptions{.max_procs = 2}, [&] {
      kernel.refuse_from_now_on();
      const std::string server = why(TlsServer::load(server_options()));
      EXPECT_EQ(server, "load certificate " + site_.cert_file + ": Too many open files");
      const std::string client = why(TlsClient::load(client_options()));
      EXPECT_NE(client.find(authority_.file() + ": Too many open files"), client.npos) << client;
    });
    end_child(kernel);
  });
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}

}  // namespace
}  // namespace tuza::net::testing
