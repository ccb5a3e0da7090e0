// A TLS server in the long run: new certificates under old connections, tickets, bad files, errors that reach
// only the connection concerned, and no leaks.
#include <tuza/netpoll/tests/tls_testing.h>
#include <tuza/netpoll/tls/server.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/time/sleep.h>

#include <filesystem>
#include <fstream>

namespace tuza::net::testing {
namespace {

namespace fs = std::filesystem;

class TlsServerTest : public TlsTest {
 protected:
  // True if their connection resumes an earlier session; the connection gives the client a ticket.
  static bool resumes(const std::shared_ptr<TlsServer>& server, const std::shared_ptr<TlsClient>& client) {
    Ends ends = meet(server, client);
    EXPECT_TRUE(ends.server->write_all("x"));  // with the ticket before it
    EXPECT_EQ(read_some(*ends.client), "x");
    return ends.client->tls_info()->resumed;
  }
};

TEST_F(TlsServerTest, AReloadAffectsOnlyNewConnections) {
  run_with(2, [&] {
    const auto server = TlsServer::load(server_options()).value();
    const auto client = TlsClient::load(client_options()).value();
    Ends old_ends = meet(server, TlsClient::load(client_options()).value());
    Ends ticket_giver = meet(server, client);
    ASSERT_TRUE(ticket_giver.server->write_all("x"));
    EXPECT_EQ(read_some(*ticket_giver.client), "x");
    authority_.issue("site", {.common_name = "renewed"});
    ASSERT_TRUE(server->reload());
    EXPECT_EQ(meet(server, TlsClient::load(client_options()).value()).client->tls_info()->peer_subject,
              "CN=renewed");
    const Ends resumed = meet(server, client);
    EXPECT_TRUE(resumed.client->tls_info()->resumed) << "tickets outlive a reload";
    EXPECT_TRUE(resumed.server->tls_info()->resumed);
    ASSERT_TRUE(old_ends.client->write_all("still here"));
    EXPECT_EQ(read_some(*old_ends.server), "still here");
    EXPECT_EQ(old_ends.client->tls_info()->peer_subject, "CN=localhost");
  });
}

TEST_F(TlsServerTest, EachTicketIsForOneHandshakeAndBringsTheNext) {
  run_with(2, [&] {
    const auto server = TlsServer::load(server_options()).value();
    const auto client = TlsClient::load(client_options()).value();
    for (int i = 0; i < 4; ++i) {
      Ends ends = meet(server, client);
      ASSERT_TRUE(ends.client);
      EXPECT_EQ(ends.client->tls_info()->resumed, i > 0);
      ASSERT_TRUE(ends.server->write_all("x"));
      EXPECT_EQ(read_some(*ends.client), "x");
    }
    const auto other = TlsServer::load(server_options()).value();
    EXPECT_FALSE(meet(other, client).client->tls_info()->resumed) << "another server's tickets";
  });
}

TEST_F(TlsServerTest, TicketsOutliveOneChangeOfTheirKeyButNotTwo) {
  run_with(2, [&] {
    const auto server = TlsServer::load(server_options()).value();
    const auto client = TlsClient::load(client_options()).value();
    tls::TicketKeys& keys = server->state().ticket_keys();
    const auto resumed = [&] { return resumes(server, client); };
    const auto now = Clock::now();
    EXPECT_FALSE(resumed());
    EXPECT_FALSE(keys.renew(now + 11h));
    EXPECT_TRUE(keys.renew(now + 13h));
    EXPECT_FALSE(keys.renew(now + 13h));
    EXPECT_TRUE(resumed()) << "with the key before";
    EXPECT_TRUE(keys.renew(now + 26h));
    EXPECT_TRUE(resumed()) << "with a ticket that the last one has brought";
    EXPECT_TRUE(keys.renew(now + 39h));
    EXPECT_TRUE(keys.renew(now + 52h));
    EXPECT_FALSE(resumed());
    EXPECT_TRUE(keys.renew(now + 100h));
    EXPECT_FALSE(resumed()) << "nobody has come for so long that the key before is too old as well";
  });
}

TEST_F(TlsServerTest, ASessionOfTls12IsForMoreThanOneHandshake) {
  run_with(2, [&] {
    const auto server = TlsServer::load(server_options()).value();
    const auto begun = server->state().begin().value();
    SSL_CTX_set_max_proto_version(SSL_get_SSL_CTX(begun.ssl.get()), TLS1_2_VERSION);
    const auto client = TlsClient::load(client_options()).value();
    for (int i = 0; i < 4; ++i) {
      Ends ends = meet(server, client);
      ASSERT_TRUE(ends.client) << why(ends.client);
      EXPECT_EQ(ends.client->tls_info()->version, "TLSv1.2");
      EXPECT_EQ(ends.client->tls_info()->resumed, i > 0) << i;
    }
  });
}

// Each connection gives a ticket with a lifetime of its own: a client could otherwise resume for ever.
TEST_F(TlsServerTest, ResumptionsEndWhenTheirFirstHandshakeIsTooOld) {
  run_with(2, [&] {
    // A slow machine may need longer than the first lifetimes for two handshakes.
    bool resumed = false;
    for (long seconds = 2; !resumed; seconds *= 2) {
      ASSERT_LT(seconds, 100);
      const auto server = TlsServer::load(server_options()).value();
      SSL_CTX_set_timeout(SSL_get_SSL_CTX(server->state().begin().value().ssl.get()), seconds);
      const auto client = TlsClient::load(client_options()).value();
      EXPECT_FALSE(resumes(server, client));
      while (resumes(server, client)) {
        resumed = true;
        sleep_for(50ms);
      }
    }
  });
}

TEST_F(TlsServerTest, NobodyResumesWithACertificateThatHasExpired) {
  run_with(2, [&] {
    TlsServerOptions options = server_options();
    options.client_auth = ClientAuth::kRequire;
    options.client_ca_file = authority_.file();
    const auto server = TlsServer::load(options).value();
    bool resumed = false;
    for (long seconds = 3; !resumed; seconds *= 2) {  // a slow machine may need more than the first
      ASSERT_LT(seconds, 100);
      TlsClientOptions mine = client_options();
      mine.certificate =
          authority_.issue("brief", {.common_name = "mayfly", .names = {}, .valid_for_s = seconds});
      const auto client = TlsClient::load(mine).value();
      Ends ends = meet(server, client);
      for (; ends.server; ends = meet(server, client)) {
        EXPECT_EQ(ends.server->tls_info()->peer_subject, "CN=mayfly");
        resumed = resumed || ends.server->tls_info()->resumed;
        ASSERT_TRUE(ends.server->write_all("x"));  // with the next ticket before it
        EXPECT_EQ(read_some(*ends.client), "x");
        sleep_for(50ms);
      }
      EXPECT_EQ(why(ends.server), "tls handshake: certificate verify failed: certificate has expired");
    }
  });
}

// A session from the time when unknown clients were admitted must not admit them later.
TEST_F(TlsServerTest, TicketsAreVoidWhereOtherClientsAreAsked) {
  run_with(2, [&] {
    TlsServerOptions options = server_options();
    options.client_auth = ClientAuth::kRequest;
    options.client_ca_file = authority_.write("clients.crt", "");
    fs::copy_file(authority_.file(), options.client_ca_file, fs::copy_options::overwrite_existing);
    const auto server = TlsServer::load(options).value();
    const auto client = TlsClient::load(client_options()).value();
    Ends first = meet(server, client);
    ASSERT_TRUE(first.server->write_all("x"));
    EXPECT_EQ(read_some(*first.client), "x");
    Authority other("Others");
    fs::copy_file(other.file(), options.client_ca_file, fs::copy_options::overwrite_existing);
    ASSERT_TRUE(server->reload());
    EXPECT_FALSE(meet(server, client).server->tls_info()->resumed);
  });
}

TEST_F(TlsServerTest, BadFilesAreNamedAndWhatWasThereStays) {
  const TlsCertificate other = authority_.issue("other");
  const std::string text = authority_.write("text.pem", "no PEM at all\n");
  const std::string cut = authority_.write("cut.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n");
  const std::string missing = authority_.path("missing.pem");
  const std::string secret = authority_.write(
      "secret.key", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n");
  run_with(1, [&] {
    const auto said = [](TlsServerOptions options) { return why(TlsServer::load(std::move(options))); };
    const auto with = [&](const std::string& cert, const std::string& key) {
      return said({.certificates = {{cert, key}}});
    };
    EXPECT_EQ(with(missing, site_.key_file), "load certificate " + missing + ": No such file or directory");
    EXPECT_EQ(with(site_.cert_file, missing), "load key " + missing + ": No such file or directory");
    EXPECT_EQ(with(text, site_.key_file), "load certificate " + text + ": no PEM block of the expected kind");
    EXPECT_TRUE(with(cut, site_.key_file).starts_with("load certificate " + cut + ": "));
    EXPECT_EQ(with(site_.cert_file, site_.cert_file),
              "load key " + site_.cert_file + ": no PEM block of the expected kind");
    EXPECT_TRUE(with(site_.cert_file, secret).starts_with("load key " + secret + ": "));
    const std::string mismatch =
        "load key " + other.key_file + " for " + site_.cert_file + ": key values mismatch";
    EXPECT_EQ(with(site_.cert_file, other.key_file), mismatch);
    EXPECT_EQ(with(authority_.path(""), site_.key_file).find("load certificate " + authority_.path("")), 0u);
    EXPECT_EQ(said({}), "load certificate (none given): Invalid argument");
    TlsServerOptions options = server_options();
    options.client_auth = ClientAuth::kRequire;
    EXPECT_EQ(said(options), "load authorities: No such file or directory");
    options.client_ca_file = text;
    EXPECT_EQ(said(options), "load authorities " + text + ": no PEM block of the expected kind");
    options = server_options();
    options.alpn = {""};
    EXPECT_EQ(said(options), "tls alpn \"\": Invalid argument");

    const auto server = TlsServer::load(server_options()).value();
    fs::copy_file(other.key_file, site_.key_file, fs::copy_options::overwrite_existing);
    EXPECT_EQ(why(server->reload()),
              "load key " + site_.key_file + " for " + site_.cert_file + ": key values mismatch");
    EXPECT_TRUE(meet(server, TlsClient::load(client_options()).value()).client);
  });
}

std::size_t descriptors() {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), {}));
}

// OpenSSL reports errors through a queue of the thread. One P: all share a thread, and handshakes that fail
// in different ways alternate with calls that must not see their errors.
TEST_F(TlsServerTest, ErrorsStayWithTheirConnection) {
  run_with(1, [&] {
    const auto server = TlsServer::load(server_options()).value();
    const int rounds = tuza::testing::scaled(100'000);
    TcpPair good = pair();
    int good_rounds = 0;
    std::atomic<int> bad_rounds = 0;
    Chan<int> turns{1};  // for the bad ones: the good ones are cheaper
    WaitGroup group;
    group.go([&] {
      while (read_some(good.server) == "ping") ASSERT_TRUE(good.server.write_all("pong"));
    });
    group.go([&] {
      std::string got = "pong";
      while (good_rounds + bad_rounds < rounds && got == "pong") {
        EXPECT_EQ(why(good.client.write_all("ping")), "") << good_rounds;
        got = read_some(good.client);
        EXPECT_EQ(got, "pong") << good_rounds;
        if (++good_rounds % 16 == 0) turns.send(good_rounds);
      }
      turns.close();
      good.client.close();
    });
    const auto fail = [&](std::string_view garbage, std::string_view expected) {
      Listener listener = listen_on_loopback();
      listener.use_tls(server);
      for (const int turn : turns) {
        TcpPair ends = connect(listener);
        EXPECT_TRUE(ends.client.write_all(garbage));
        EXPECT_EQ(why(ends.server.handshake()), expected) << turn;
        if (++bad_rounds % 16 == 0) {
          EXPECT_FALSE(TlsServer::load({.certificates = {{site_.key_file, site_.key_file}}}));
        }
        EXPECT_TRUE(ends.client.set_linger_zero());
      }
    };
    group.go([&] { fail("GET / HTTP/1.0\r\n\r\n", "tls handshake GET: http request"); });
    group.go([&] { fail("OPTIONS * HTTP/1.1\r\n\r\n", "tls handshake OPTIONS: http request"); });
    group.go([&] {
      fail("gibberish, and more of it", "tls handshake: wrong version number: the peer may not speak TLS");
    });
    group.wait();
    EXPECT_GT(bad_rounds, rounds / 32);
    std::printf("%d good rounds, %d bad ones\n", good_rounds, bad_rounds.load());
  });
}

TEST_F(TlsServerTest, AProxyNamesTheClientBeforeTheHandshake) {
  run_with(2, [&] {
    const auto client = TlsClient::load(client_options()).value();
    Listener listener = listen_on_loopback();
    listener.use_tls(TlsServer::load(server_options()).value());
    Server server(
        std::move(listener),
        [](Session& session) {
          if (!session.conn().handshake()) return;
          (void)session.conn().write_last(session.conn().remote_address().value_or("-"));
        },
        {.proxy_protocol = ProxyProtocol::kRequired, .proxies = {Network::parse("127.0.0.1").value()}});
    WaitGroup serving;
    serving.go([&] { EXPECT_TRUE(server.serve()); });
    Conn plain = dial("tcp", server.address()).value();
    ASSERT_TRUE(plain.write_all("PROXY TCP4 203.0.113.7 192.0.2.10 54102 443\r\n"));
    Result<Conn> conn = client->start(std::move(plain));
    ASSERT_TRUE(conn) << conn.error().message();
    EXPECT_EQ(read_to_end(*conn), "203.0.113.7:54102");
    server.shutdown(Clock::now() + 1h);
    serving.wait();
  });
}

TEST_F(TlsServerTest, NothingIsLeftOfHandshakesThatFailed) {
  run_with(2, [&] {
    const auto server = TlsServer::load(server_options()).value();
    TlsClientOptions options = client_options();
    options.server_name = "wrong.test";
    const auto wrong = TlsClient::load(options).value();
    const auto right = TlsClient::load(client_options()).value();
    (void)meet(server, right);
    const std::size_t before = descriptors();
    for (int i = 0; i < 50; ++i) {
      EXPECT_FALSE(meet(server, wrong).client);
      EXPECT_TRUE(meet(server, right).client);
    }
    yield_until([&] { return descriptors() <= before; });
  });
}

}  // namespace
}  // namespace tuza::net::testing
