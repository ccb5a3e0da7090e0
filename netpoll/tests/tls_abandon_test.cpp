// Waits on TLS connections that the runtime abandons when it ends.
#include <tuza/netpoll/tests/abandoned_wait.h>
#include <tuza/netpoll/tests/tls_testing.h>

#include <optional>
#include <utility>

namespace tuza::net::testing {
namespace {

// A server with a certificate, and a client that trusts it. The keys are generated once.
class TlsWait : public NetWait {
 protected:
  static Authority& authority() {
    static Authority instance;
    return instance;
  }
  void open_listener() {
    static const TlsCertificate site = authority().issue("site");
    server_ = TlsServer::load({.certificates = {site}}).value();
    client_ = TlsClient::load({.ca_file = authority().file(), .server_name = "localhost"}).value();
    listener_.emplace(listen_on_loopback());
    listener_->use_tls(server_);
  }
  Result<Conn> dial_tls() { return client_->dial("tcp", listener_->address()); }

  std::shared_ptr<TlsServer> server_;
  std::shared_ptr<TlsClient> client_;
  std::optional<Listener> listener_;
};

class TlsAccept : public TlsWait {
 public:
  void open() override { open_listener(); }
  void wait() override { (void)listener_->accept(); }
  void poke() override { RawSocket::calling(SocketName::of(listener_->endpoint())); }
  bool use() override {
    return accepts(*listener_, [this] { return dial_tls(); });
  }
  void close() override { listener_->close(); }
};

class TlsOfPair : public TlsWait {
 public:
  void open() override {
    open_listener();
    WaitGroup group;
    std::optional<Conn> dialled;
    group.go([&] { dialled.emplace(dial_tls().value()); });
    Conn accepted = listener_->accept().value();
    EXPECT_TRUE(accepted.handshake());
    group.wait();
    ends_.emplace(TcpPair{std::move(*dialled), std::move(accepted)});
  }
  void close() override {
    ends_->client.close();
    ends_->server.close();
  }

 protected:
  std::optional<TcpPair> ends_;
};

class TlsRead : public TlsOfPair {
 public:
  void wait() override { read_some(ends_->client); }
  bool use() override {
    return transfers(ends_->server, ends_->client) && transfers(ends_->client, ends_->server);
  }
};

class TlsServerRead : public TlsOfPair {
 public:
  void wait() override { read_some(ends_->server); }
  bool use() override {
    return transfers(ends_->client, ends_->server) && transfers(ends_->server, ends_->client);
  }
};

// The peer does not read. In the next runtime it reads everything, beginning with the rest of the interrupted
// record.
class TlsWrite : public TlsOfPair {
 public:
  void wait() override { (void)ends_->client.write_all(text_); }
  bool use() override {
    return transfers(ends_->client, ends_->server) && transfers(ends_->server, ends_->client);
  }

 private:
  const std::string text_ = std::string(16 << 20, 'a');
};

// The client is silent. In the next runtime it performs the handshake.
class TlsHandshake : public TlsWait {
 public:
  void open() override {
    open_listener();
    silent_.emplace(dial("tcp", listener_->address()).value());
    accepted_.emplace(listener_->accept().value());
  }
  void wait() override { (void)accepted_->handshake(); }
  bool use() override {
    WaitGroup group;
    std::optional<Conn> speaks;
    group.go([&] {
      if (Result<Conn> client = client_->start(std::move(*silent_))) speaks.emplace(std::move(*client));
    });
    const Result<void> shaken = accepted_->handshake();
    EXPECT_TRUE(shaken) << why(shaken);
    group.wait();
    return speaks && transfers(*speaks, *accepted_) && transfers(*accepted_, *speaks);
  }
  void close() override { accepted_->close(); }

 private:
  std::optional<Conn> silent_, accepted_;
};

// The peer does not answer until use().
class TlsDial : public TlsWait {
 public:
  void open() override { open_listener(); }
  void wait() override { (void)dial_tls(); }
  bool use() override {
    return accepts(*listener_, [this] { return dial_tls(); });
  }
  void close() override { listener_->close(); }
};

}  // namespace

std::vector<WaitKind> all_kinds_of_waits() {
  return {
      kind_of_wait<TlsAccept>("Accept"),         kind_of_wait<TlsRead>("Read"),
      kind_of_wait<TlsServerRead>("ServerRead"), kind_of_wait<TlsWrite>("Write"),
      kind_of_wait<TlsHandshake>("Handshake"),   kind_of_wait<TlsDial>("Dial"),
  };
}

}  // namespace tuza::net::testing

#if defined(TUZA_ASAN)
// At exit OpenSSL frees the tables in which LeakSanitizer would find what its connections still own.
extern "C" int __lsan_is_turned_off() { return ::testing::internal::InDeathTestChild() ? 1 : 0; }
#endif
