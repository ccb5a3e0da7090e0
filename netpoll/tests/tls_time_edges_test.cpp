// The earliest and latest representable times, for the TLS calls that take a time; see time_edges_test.cpp.
#include <tuza/netpoll/tests/tls_testing.h>

#include <ostream>

namespace tuza::net::testing {
namespace {

using std::chrono::milliseconds;

struct HandshakeTimeout {
  const char* name;
  milliseconds timeout;
  bool passed;
};
std::ostream& operator<<(std::ostream& out, const HandshakeTimeout& edge) { return out << edge.name; }

const HandshakeTimeout kTimeouts[] = {
    {"min", milliseconds::min(), true},
    {"min_and_one", milliseconds::min() + 1ms, true},
    {"minus_one", -1ms, true},
    {"zero", 0ms, true},
    {"less_than_max", milliseconds::max() - 1ms, false},
    {"max", milliseconds::max(), false},
};

class TlsTimeEdges : public TlsTest, public ::testing::WithParamInterface<HandshakeTimeout> {
 protected:
  static void expect(const Result<Conn>& end) {
    EXPECT_EQ(end.has_value(), !GetParam().passed) << why(end);
    EXPECT_TRUE(end || end.error().timeout()) << why(end);
  }
};
INSTANTIATE_TEST_SUITE_P(All, TlsTimeEdges, ::testing::ValuesIn(kTimeouts),
                         [](const auto& c) { return std::string(c.param.name); });

TEST_P(TlsTimeEdges, OfAServersHandshake) {
  run_with(2, [this] {
    TlsServerOptions options = server_options();
    options.handshake_timeout = GetParam().timeout;
    expect(meet(options, client_options()).server);
  });
}

TEST_P(TlsTimeEdges, OfAClientsHandshake) {
  run_with(2, [this] {
    TlsClientOptions options = client_options();
    options.handshake_timeout = GetParam().timeout;
    expect(meet(server_options(), options).client);
  });
}

TEST_F(TlsTest, DialTakesEveryDeadline) {
  run_with(2, [this] {
    Listener listener = listen_on_loopback();
    listener.use_tls(TlsServer::load(server_options()).value());
    const auto client = TlsClient::load(client_options()).value();
    WaitGroup group;
    group.go([&listener] {
      while (Result<Conn> conn = listener.accept()) (void)conn->handshake();
    });
    for (const TimePoint when : {TimePoint::min(), TimePoint(-1ns), TimePoint(0ns)}) {
      EXPECT_TRUE(client->dial("tcp", listener.address(), when).error().timeout());
    }
    for (const TimePoint when : {TimePoint::max() - 1ns, TimePoint::max()}) {
      EXPECT_TRUE(client->dial("tcp", listener.address(), when));
    }
    listener.close();
    group.wait();
  });
}

}  // namespace
}  // namespace tuza::net::testing
