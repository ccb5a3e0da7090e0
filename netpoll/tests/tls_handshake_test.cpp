// Handshakes: which peers are trusted, which certificate is presented, what is negotiated, and how a failed
// handshake ends.
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/netpoll/tests/tls_testing.h>
#include <tuza/netpoll/tls/server.h>
#include <tuza/sched/sync/context.h>

#include <sys/ioctl.h>

#include <atomic>
#include <string>
#include <vector>

namespace tuza::net::testing {
namespace {

class TlsHandshakeTest : public TlsTest {
 protected:
  static int unread_bytes(Conn& conn) {
    int bytes = 0;
    EXPECT_TRUE(detail::ConnParts::descriptor(conn).control(
        "FIONREAD", [&](int fd) { return ::ioctl(fd, FIONREAD, &bytes); }));
    return bytes;
  }
  // What the client reports of a server with that certificate.
  std::string clients_view_of(const CertificateWish& wish) {
    const TlsCertificate certificate = authority_.issue("wish", wish);
    const Ends ends = meet({.certificates = {certificate}}, client_options());
    EXPECT_EQ(ends.client.has_value(), ends.server.has_value());
    return why(ends.client);
  }
};

TEST_F(TlsHandshakeTest, BothSidesAgreeOnTheBest) {
  run_with(2, [&] {
    TlsServerOptions server = server_options();
    server.alpn = {"h2", "http/1.1"};
    TlsClientOptions client = client_options();
    client.alpn = {"http/1.1", "spdy/1"};
    const Ends ends = meet(server, client);
    ASSERT_TRUE(ends.client) << why(ends.client);
    ASSERT_TRUE(ends.server) << why(ends.server);
    for (const Conn* conn : {&*ends.client, &*ends.server}) {
      const TlsInfo info = conn->tls_info().value();
      EXPECT_EQ(info.version, "TLSv1.3");
      EXPECT_TRUE(info.cipher.starts_with("TLS_")) << info.cipher;
      EXPECT_EQ(info.alpn, "http/1.1");
      EXPECT_EQ(info.server_name, "localhost");
      EXPECT_FALSE(info.resumed);
    }
    EXPECT_EQ(ends.client->tls_info()->peer_subject, "CN=localhost");
    EXPECT_EQ(ends.server->tls_info()->peer_subject, "");
    EXPECT_FALSE(tcp_pair().client.tls_info());
  });
}

TEST_F(TlsHandshakeTest, NoCommonProtocolIsRefused) {
  run_with(2, [&] {
    TlsServerOptions server = server_options();
    server.alpn = {"http/1.1"};
    TlsClientOptions client = client_options();
    client.alpn = {"spdy/1"};
    EXPECT_EQ(why(meet(server, client).client),
              "tls handshake localhost: tlsv1 alert no application protocol");
    EXPECT_TRUE(meet(server, client_options()).client) << "who offers nothing need not agree";
  });
}

TEST_F(TlsHandshakeTest, TheClientRefusesUntrustedServers) {
  run_with(2, [&] {
    EXPECT_EQ(clients_view_of({}), "");
    EXPECT_EQ(clients_view_of({.valid_for_s = -60}),
              "tls handshake localhost: certificate verify failed: certificate has expired");
    EXPECT_EQ(clients_view_of({.names = {"DNS:other.test"}}),
              "tls handshake localhost: certificate verify failed: hostname mismatch");
    EXPECT_EQ(clients_view_of({.names = {"DNS:local*"}}),
              "tls handshake localhost: certificate verify failed: hostname mismatch");
    EXPECT_EQ(why(meet(server_options(), client_options(), "127.0.0.1").client), "");
    EXPECT_EQ(why(meet(server_options(), client_options(), "127.0.0.2").client),
              "tls handshake 127.0.0.2: certificate verify failed: IP address mismatch");
    Authority stranger("Stranger");
    TlsClientOptions client = client_options();
    client.ca_file = stranger.file();
    const Ends ends = meet(server_options(), client);
    EXPECT_EQ(why(ends.client),
              "tls handshake localhost: certificate verify failed: unable to get local issuer certificate");
    EXPECT_TRUE(is_tls_error(ends.client.error()));
    EXPECT_EQ(why(ends.server), "tls handshake: tlsv1 alert unknown ca");
    client.insecure_skip_verify = true;
    EXPECT_TRUE(meet(server_options(), client).client);
  });
}

TEST_F(TlsHandshakeTest, TheServerNameChoosesTheCertificate) {
  run_with(2, [&] {
    const auto issue = [&](const std::string& name, std::vector<std::string> names) {
      return authority_.issue(name, {.common_name = name, .names = std::move(names)});
    };
    const auto server =
        TlsServer::load(
            {.certificates = {issue("first", {"DNS:first.test"}), issue("wild", {"DNS:*.wild.test"}),
                              issue("exact", {"DNS:Exact.wild.test", "DNS:two.test"})}})
            .value();
    TlsClientOptions options = client_options();
    options.insecure_skip_verify = true;
    const auto client = TlsClient::load(options).value();
    const auto shown = [&](std::string_view name) {
      Ends ends = meet(server, client, name);
      return ends.client ? ends.client->tls_info()->peer_subject : why(ends.client);
    };
    EXPECT_EQ(shown("first.test"), "CN=first");
    EXPECT_EQ(shown("any.wild.test"), "CN=wild");
    EXPECT_EQ(shown("EXACT.wild.test"), "CN=exact");
    EXPECT_EQ(shown("two.test"), "CN=exact");
    EXPECT_EQ(shown("two.test."), "CN=exact") << "a complete name";
    EXPECT_EQ(shown("deep.any.wild.test"), "CN=first");
    EXPECT_EQ(shown("wild.test"), "CN=first");
    EXPECT_EQ(shown("127.0.0.1"), "CN=first") << "no name is sent for an address";
  });
}

TEST_F(TlsHandshakeTest, ClientsShowCertificatesIfAskedFor) {
  const TlsCertificate mine = authority_.issue("client", {.common_name = "gopher", .names = {}});
  Authority stranger("Stranger");
  const TlsCertificate strange = stranger.issue("client", {.common_name = "stranger", .names = {}});
  run_with(2, [&] {
    TlsServerOptions server = server_options();
    server.client_ca_file = authority_.file();
    // With TLS 1.3 the client is done before the server has seen its certificate: the server's view counts.
    const auto servers_view = [&](ClientAuth auth, const TlsCertificate& certificate) {
      server.client_auth = auth;
      TlsClientOptions client = client_options();
      client.certificate = certificate;
      Ends ends = meet(server, client);
      if (ends.client && !ends.server) {
        EXPECT_TRUE(read_some(*ends.client).starts_with("<tls read localhost: ")) << "it learns why";
      }
      return ends.server ? ends.server->tls_info()->peer_subject : why(ends.server);
    };
    EXPECT_EQ(servers_view(ClientAuth::kRequire, mine), "CN=gopher");
    EXPECT_EQ(servers_view(ClientAuth::kRequire, {}), "tls handshake: peer did not return a certificate");
    EXPECT_EQ(servers_view(ClientAuth::kRequest, mine), "CN=gopher");
    EXPECT_EQ(servers_view(ClientAuth::kRequest, {}), "");
    EXPECT_EQ(servers_view(ClientAuth::kNone, mine), "");
    EXPECT_TRUE(
        servers_view(ClientAuth::kRequest, strange).starts_with("tls handshake: certificate verify failed"));
  });
}

TEST_F(TlsHandshakeTest, WhatIsNoClientHelloIsRefused) {
  run_with(2, [&] {
    const auto server = TlsServer::load(server_options()).value();
    std::string too_long("\x16\x03\x01\xff\xff", 5);  // that is what its record says
    too_long.append(1000, 'x');
    const std::vector<std::string> bad = {
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        std::string(300, '\xff'),
        too_long,
        std::string("\x16\x03\x01\x00\x04\x01\x00\x00\x00", 9),  // an empty ClientHello
        std::string("\x17\x03\x03\x00\x05hello", 10),
    };
    for (const std::string& bytes : bad) {
      Listener listener = listen_on_loopback();
      listener.use_tls(server);
      TcpPair ends = connect(listener);
      ASSERT_TRUE(ends.client.write_all(bytes));
      const Result<void> shaken = ends.server.handshake();
      ASSERT_FALSE(shaken);
      EXPECT_TRUE(is_tls_error(shaken.error())) << shaken.error().message();
      EXPECT_EQ(why(ends.server.write_all("x")), shaken.error().message()) << "it stays refused";
      ends.server.close();
      const std::string answer = read_to_end(ends.client);
      // OpenSSL sends nothing to a peer that does not begin with a record.
      const bool record = bytes.front() == '\x16' || bytes.front() == '\x17';
      EXPECT_EQ(answer.starts_with("\x15\x03"), record) << answer;
    }
  });
}

TEST_F(TlsHandshakeTest, AClientThatLeavesAfterHalfAHelloIsNoticed) {
  run_with(2, [&] {
    const auto server = TlsServer::load(server_options()).value();
    Listener listener = listen_on_loopback();
    listener.use_tls(server);
    TcpPair ends = connect(listener);
    ASSERT_TRUE(ends.client.write_all(std::string_view("\x16\x03\x01\x02", 4)));
    ends.client.close();
    EXPECT_TRUE(ends.server.handshake().error().is(Errc::kEndOfStream));
  });
}

TEST_F(TlsHandshakeTest, SilenceEndsWithTheTimeoutAndOthersAreNotKeptWaiting) {
  run_with(1, [&] {
    TlsServerOptions options = server_options();
    options.handshake_timeout = 2s;  // a handshake ends within it, on a busy machine, too
    const auto server = TlsServer::load(options).value();
    const auto client = TlsClient::load(client_options()).value();
    Listener listener = listen_on_loopback();
    listener.use_tls(server);
    TcpPair silent = connect(listener);
    silent.server.set_deadline(far_away());
    Result<std::size_t> end = std::size_t{1};
    WaitGroup group;
    group.go([&] {
      std::array<char, 8> some;
      end = silent.server.read(std::span(some));
    });
    wait_until_parked(1, WaitReason::kIoRead);
    EXPECT_TRUE(meet(server, client).client);
    group.wait();
    ASSERT_FALSE(end);
    EXPECT_TRUE(end.error().timeout());
    EXPECT_EQ(end.error().op(), "tls handshake");
  });
}

// Counts the SSL objects that are created.
class CountingSide final : public tls::Side {
 public:
  explicit CountingSide(std::shared_ptr<TlsServer> server) : server_(std::move(server)) {}
  Result<Begun> begin() override {
    ++begun;
    return server_->state().begin();
  }
  [[nodiscard]] bool is_server() const override { return true; }
  [[nodiscard]] std::chrono::milliseconds handshake_timeout() const override { return 60s; }
  [[nodiscard]] std::string peer() const override { return {}; }
  std::atomic<int> begun{0};

 private:
  const std::shared_ptr<TlsServer> server_;
};

TEST_F(TlsHandshakeTest, ASilentClientHasNoSslObject) {
  run_with(2, [&] {
    const auto side = std::make_shared<CountingSide>(TlsServer::load(server_options()).value());
    TcpPair ends = tcp_pair();
    tls::Stream stream(detail::ConnParts::descriptor(ends.server), side);
    WaitGroup group;
    group.go([&] { EXPECT_TRUE(stream.handshake(nullptr)); });
    wait_until_parked(1, WaitReason::kIoRead);
    EXPECT_EQ(side->begun, 0);
    const Result<Conn> client =
        TlsClient::load(client_options()).value()->start(std::move(ends.client), "localhost");
    EXPECT_EQ(why(client), "");
    group.wait();
    EXPECT_EQ(side->begun, 1);
  });
}

// An outside event that ends a call does not end the handshake: the next call continues it.
TEST_F(TlsHandshakeTest, ADeadlineOfTheCallersLeavesItToTheNextCall) {
  run_with(2, [&] {
    const auto server = TlsServer::load(server_options()).value();
    const auto client = TlsClient::load(client_options()).value();
    Listener listener = listen_on_loopback();
    listener.use_tls(server);
    TcpPair ends = connect(listener);
    ends.server.set_read_deadline(long_ago());
    EXPECT_EQ(why(ends.server.handshake()), "read: deadline exceeded");
    ends.server.set_read_deadline(kNoDeadline);
    const auto [ctx, cancel] = with_cancel(Context::background());
    cancel();
    EXPECT_TRUE(ends.server.handshake(ctx).error().cancelled());
    WaitGroup group;
    group.go([&] { EXPECT_TRUE(client->start(std::move(ends.client))); });
    EXPECT_EQ(why(ends.server.handshake()), "");
    group.wait();
  });
}

// OpenSSL would recognize four methods only, and nothing at all of what comes in pieces.
TEST_F(TlsHandshakeTest, PlainHttpIsRecognizedInAnyPieces) {
  run_with(2, [&] {
    Listener listener = listen_on_loopback();
    listener.use_tls(TlsServer::load(server_options()).value());
    const auto error_after = [&](const std::vector<std::string>& pieces) {
      TcpPair ends = connect(listener);
      Error error(Errc::kOther, "none");
      WaitGroup group;
      std::atomic<bool> ended{false};
      group.go([&] {
        error = ends.server.handshake().error();
        ended = true;
      });
      for (const std::string& piece : pieces) {
        EXPECT_TRUE(ends.client.write_all(piece));
        tuza::testing::yield_until([&] { return ended || unread_bytes(ends.server) == 0; });
      }
      EXPECT_TRUE(ends.client.close_write());
      group.wait();
      return error;
    };
    for (const std::string request : {"GET /", "OPTIONS *", "PATCH /x HTTP/1.1\r\n", "\r\n\r\nDELETE /",
                                      "M-SEARCH *", "VERSION-CONTROL /"}) {
      std::vector<std::string> bytes;
      for (const char byte : request) bytes.emplace_back(1, byte);
      EXPECT_TRUE(is_plain_http(error_after(bytes))) << request;
      for (std::size_t cut = 1; cut < request.size(); ++cut) {
        EXPECT_TRUE(is_plain_http(error_after({request.substr(0, cut), request.substr(cut)})))
            << request << " " << cut;
      }
    }
    const std::string hello = "\x16\x03\x01";
    for (const std::vector<std::string>& pieces :
         std::initializer_list<std::vector<std::string>>{{"SSH", "-2.0-OpenSSH_9.2\r\n"},
                                                         {"G", "IBBERISH."},
                                                         {"A", hello + std::string(600, 'x')},
                                                         {"\r\n", hello + std::string(600, 'x')},
                                                         {std::string(20, 'A'), std::string(50, 'A')}}) {
      const Error error = error_after(pieces);
      EXPECT_TRUE(is_tls_error(error) && !is_plain_http(error)) << error.message();
    }
    for (const char* cut_off : {"", "OPTIONS", "\r\n"}) {
      EXPECT_TRUE(error_after({cut_off}).is(Errc::kEndOfStream)) << cut_off;
    }
  });
}

// -- Deadlines. The client never says anything; the handshake timeout is far away.

class SilentClientTest : public TlsTest {
 protected:
  // Calls `body` with the server's end.
  void with_silent_client(const std::function<void(Conn&)>& body) {
    run_with(2, [this, &body] {
      Listener listener = listen_on_loopback();
      TlsServerOptions options = server_options();
      options.handshake_timeout = 1h;
      listener.use_tls(TlsServer::load(options).value());
      const Conn silent = dial("tcp", listener.address()).value();
      Conn conn = listener.accept().value();
      body(conn);
    });
  }
};

TEST_F(SilentClientTest, AWriteDeadlineEndsTheHandshakeOfAWrite) {
  with_silent_client([](Conn& conn) {
    for (const TimePoint deadline : {long_ago(), Clock::now() + 10ms}) {
      conn.set_write_deadline(deadline);
      EXPECT_TRUE(conn.write_all("220 ready\r\n").error().timeout());
      EXPECT_TRUE(conn.write_last("220 ready\r\n").error().timeout());
    }
  });
}

TEST_F(SilentClientTest, AWriteDeadlineThatIsSetDuringTheHandshakeEndsIt) {
  with_silent_client([](Conn& conn) {
    for (const auto later : {-1000ms, 10ms}) {
      conn.set_write_deadline(kNoDeadline);
      WaitGroup group;
      group.go([&] { EXPECT_TRUE(conn.write_all("220 ready\r\n").error().timeout()); });
      wait_until_parked(1, WaitReason::kIoRead);
      conn.set_write_deadline(Clock::now() + later);
      group.wait();
    }
  });
}

TEST_F(SilentClientTest, AWriteTimeoutLimitsTheHandshakeOfAWrite) {
  with_silent_client([](Conn& conn) {
    conn.set_write_timeout(10ms);
    EXPECT_TRUE(conn.write_all("220 ready\r\n").error().timeout());
  });
}

// Each call ends by the deadline of its own direction, even if the other one performs the handshake.
TEST_F(SilentClientTest, TheDeadlineOfTheOtherDirectionDoesNot) {
  for (const bool writes : {false, true}) {
    with_silent_client([writes](Conn& conn) {
      const auto set_deadline = [&](bool of_writes) {
        if (of_writes) {
          conn.set_write_deadline(long_ago());
        } else {
          conn.set_read_deadline(long_ago());
        }
      };
      set_deadline(!writes);
      std::atomic<bool> ended{false};
      WaitGroup group;
      group.go([&] {
        std::byte byte{};
        const bool late =
            writes ? conn.write_all("x").error().timeout() : conn.read(std::span(&byte, 1)).error().timeout();
        EXPECT_TRUE(late);
        ended = true;
      });
      wait_until_parked(1, WaitReason::kIoRead);
      sleep_for(5ms);
      EXPECT_FALSE(ended);
      set_deadline(writes);
      group.wait();
    });
  }
}

TEST_F(SilentClientTest, ADeadlineEndsAWaitForTheOtherDirectionsHandshake) {
  with_silent_client([](Conn& conn) {
    WaitGroup group;
    group.go([&] { EXPECT_TRUE(conn.read(std::span<std::byte>()).error().closed()); });
    wait_until_parked(1, WaitReason::kIoRead);
    conn.set_write_deadline(Clock::now() + 10ms);
    EXPECT_TRUE(conn.write_all("220 ready\r\n").error().timeout());
    const auto [ctx, cancel] = with_timeout(Context::background(), 10ms);
    conn.set_write_deadline(kNoDeadline);
    EXPECT_TRUE(conn.write_all(ctx, "220 ready\r\n").error().timeout());
    conn.set_write_timeout(10ms);
    EXPECT_TRUE(conn.write_all("220 ready\r\n").error().timeout());
    conn.close();
    group.wait();
  });
}

}  // namespace
}  // namespace tuza::net::testing
