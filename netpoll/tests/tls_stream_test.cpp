// TLS connections keep the promises of Conn: every byte once and in order, deadlines, contexts, close; and a
// truncated stream is not taken for its end.
#include <tuza/netpoll/copy.h>
#include <tuza/netpoll/file.h>
#include <tuza/netpoll/file_slice.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/netpoll/socket/socket_name.h>
#include <tuza/netpoll/tests/file_testing.h>
#include <tuza/netpoll/tests/tls_testing.h>
#include <tuza/sched/arch/calls.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <tuza/netpoll/tls/server.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/time/sleep.h>

#include <array>

namespace tuza::net::testing {
namespace {

class TlsStreamTest : public TlsTest {};

TEST_F(TlsStreamTest, BytesGoBothWaysAndTheEndIsAnEnd) {
  run_with(2, [&] {
    TcpPair ends = pair();
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(ends.client.write_all("question"));
      ASSERT_EQ(read_some(ends.server), "question");
      ASSERT_TRUE(ends.server.write_all("answer"));
      ASSERT_EQ(read_some(ends.client, 3), "ans");
      ASSERT_EQ(read_some(ends.client), "wer");
    }
    ASSERT_TRUE(ends.client.write_all("all I have"));
    ASSERT_TRUE(ends.client.close_write());
    EXPECT_EQ(read_to_end(ends.server), "all I have");
    EXPECT_EQ(read_some(ends.server), "") << "the end stays";
    EXPECT_TRUE(ends.client.write_all("more").error().is(std::errc::broken_pipe));
    ASSERT_TRUE(ends.server.write_all("thank you"));
    ends.server.close();
    EXPECT_EQ(read_to_end(ends.client), "thank you");
  });
}

TEST_F(TlsStreamTest, MuchGoesBothWaysAtOnceInPiecesOfAllSizes) {
  std::mt19937_64 random(seed());
  const std::string up = random_bytes(random, 6 << 20), down = random_bytes(random, 6 << 20);
  run_with(4, [&] {
    TcpPair ends = pair();
    const auto write = [](Conn& conn, const std::string& text, std::uint64_t pieces_seed) {
      std::mt19937_64 sizes(pieces_seed);
      for (std::size_t at = 0; at < text.size();) {
        std::array<struct iovec, 5> pieces{};
        for (struct iovec& piece : pieces) {
          const std::size_t size =
              std::min<std::size_t>(sizes() % (sizes() % 8 == 0 ? 100'000 : 3'000), text.size() - at);
          piece = {const_cast<char*>(text.data() + at), size};
          at += size;
        }
        ASSERT_TRUE(conn.writev_all(pieces));
      }
      ASSERT_TRUE(conn.close_write());
    };
    WaitGroup group;
    std::string got_up, got_down;
    group.go([&] { write(ends.client, up, 1); });
    group.go([&] { write(ends.server, down, 2); });
    group.go([&] { got_up = read_to_end(ends.server); });
    group.go([&] { got_down = read_to_end(ends.client); });
    group.wait();
    EXPECT_TRUE(got_up == up);
    EXPECT_TRUE(got_down == down);
  });
}

TEST_F(TlsStreamTest, AFileGoesInPieces) {
  const TemporaryDirectory folder;
  std::mt19937_64 random(seed());
  const std::string content = random_bytes(random, 3'000'001);
  put_file(folder / "file", content);
  run_with(2, [&] {
    TcpPair ends = pair();
    const File file = File::open(folder / "file").value();
    const File::Number number(file);
    WaitGroup group;
    group.go([&] {
      FileSlice slice{number.fd(), 1, content.size() - 1};
      EXPECT_TRUE(ends.server.send_file(slice, "head"));
      FileSlice beyond{number.fd(), content.size() - 2, 3};
      EXPECT_TRUE(ends.server.send_file(beyond).error().is(Errc::kEndOfStream));
      EXPECT_TRUE(ends.server.close_write());
    });
    EXPECT_TRUE(read_to_end(ends.client) == "head" + content.substr(1) + content.substr(content.size() - 2));
    group.wait();
  });
}

TEST_F(TlsStreamTest, WritesOfManyAreNotTornApart) {
  run_with(4, [&] {
    TcpPair ends = pair();
    constexpr std::size_t kSize = 40'000, kEach = 20;
    WaitGroup group;
    for (const char letter : {'a', 'b', 'c', 'd'}) {
      group.go([&ends, text = std::string(kSize, letter)] {
        for (std::size_t i = 0; i < kEach; ++i) ASSERT_TRUE(ends.client.write_all(text));
      });
    }
    std::string block(kSize, '\0');
    for (std::size_t i = 0; i < 4 * kEach; ++i) {
      ASSERT_TRUE(ends.server.read_full(std::as_writable_bytes(std::span(block))));
      EXPECT_TRUE(block == std::string(kSize, block.front()));
    }
    group.wait();
  });
}

TEST_F(TlsStreamTest, AStreamThatIsCutOffIsNoEnd) {
  run_with(2, [&] {
    TcpPair ends = pair();
    ASSERT_TRUE(ends.server.write_all("half of the tru"));
    ASSERT_TRUE(detail::ConnParts::descriptor(ends.server).control("shutdown", [](int fd) {
      return sys::invoke(SYS_shutdown, fd, SHUT_WR);
    }));
    EXPECT_EQ(read_some(ends.client), "half of the tru");
    std::array<char, 8> some;
    const Result<std::size_t> end = ends.client.read(std::span(some));
    ASSERT_FALSE(end);
    EXPECT_TRUE(end.error().is(Errc::kEndOfStream));
    EXPECT_NE(end.error().message().find("close_notify"), std::string::npos);
  });
}

TEST_F(TlsStreamTest, ARelayThatIsCutOffEndsInOrder) {
  run_with(2, [&] {
    TcpPair ends = pair(), plain = tcp_pair();
    WaitGroup group;
    group.go([&] { EXPECT_TRUE(relay(ends.client, plain.client).error().is(Errc::kEndOfStream)); });
    ASSERT_TRUE(ends.server.write_all("half of the tru"));
    EXPECT_EQ(read_some(plain.server), "half of the tru");
    ASSERT_TRUE(detail::ConnParts::descriptor(ends.server).control("shutdown", [](int fd) {
      return sys::invoke(SYS_shutdown, fd, SHUT_WR);
    }));
    EXPECT_EQ(read_some(plain.server), "") << "a reset would take what is on its way";
    group.wait();
  });
}

// One flipped bit, a record cut short by others, and a record that claims to be larger than allowed.
TEST_F(TlsStreamTest, BrokenRecordsAreRefusedAndSayWhy) {
  run_with(2, [&] {
    const auto raw = [](Conn& conn, std::string_view bytes_to_send) {
      std::span<const std::byte> data = bytes(bytes_to_send);
      ASSERT_TRUE(detail::ConnParts::descriptor(conn).write_all(data));
    };
    std::string oversized("\x17\x03\x03\x48\x01", 5);
    oversized.append(0x4801, 'x');
    std::string forged("\x17\x03\x03\x00\x40", 5);
    forged.append(0x40, 'x');
    std::string strange("\x17\x02\x00\x00\x05hello", 10);
    for (const std::string& record : {oversized, forged, strange}) {
      TcpPair ends = pair();
      raw(ends.client, record);
      std::array<char, 64> some;
      const Result<std::size_t> got = ends.server.read(std::span(some));
      ASSERT_FALSE(got);
      EXPECT_TRUE(is_tls_error(got.error())) << got.error().message();
      EXPECT_EQ(why(ends.server.write_all("x")), got.error().message()) << "it is broken for good";
      EXPECT_TRUE(read_some(ends.client).starts_with("<tls read localhost: "))
          << "an alert has told the client";
    }
  });
}

TEST_F(TlsStreamTest, DeadlinesAndContextsEndCallsAndLeaveTheConnectionUsable) {
  run_with(2, [&] {
    TcpPair ends = pair();
    std::array<char, 8> some;
    ends.client.set_read_deadline(Clock::now() + 20ms);
    EXPECT_TRUE(ends.client.read(std::span(some)).error().timeout());
    ends.client.set_read_deadline(kNoDeadline);
    const auto [ctx, cancel] = with_timeout(Context::background(), 20ms);
    EXPECT_TRUE(ends.client.read(ctx, std::span(some)).error().timeout());
    ASSERT_TRUE(ends.server.write_all("abcdef"));
    ASSERT_EQ(read_some(ends.client, 3), "abc");
    ends.client.set_read_deadline(long_ago());
    EXPECT_TRUE(ends.client.read(std::span(some)).error().timeout()) << "also with plaintext at hand";
    ends.client.set_read_deadline(kNoDeadline);
    EXPECT_EQ(read_some(ends.client), "def");
  });
}

// Encrypted data cannot be taken back: it goes out first when writing continues.
TEST_F(TlsStreamTest, AWriteThatTimesOutLeavesAWholeStream) {
  run_with(2, [&] {
    TcpPair ends = pair();
    const std::string block(1 << 20, 'x');
    ends.client.set_write_deadline(Clock::now() + 50ms);
    Result<void> written;
    while (written) written = ends.client.write_all(block);
    EXPECT_TRUE(written.error().timeout());
    ends.client.set_write_deadline(kNoDeadline);
    WaitGroup group;
    group.go([&] {
      EXPECT_EQ(why(ends.client.write_all("the end")), "");
      ends.client.close();
    });
    const std::string all = read_to_end(ends.server);
    group.wait();
    ASSERT_TRUE(all.ends_with("the end")) << all.substr(all.size() - std::min<std::size_t>(all.size(), 100));
    EXPECT_TRUE(all == std::string(all.size() - 7, 'x') + "the end");
  });
}

TEST_F(TlsStreamTest, CloseByAnotherEndsReadsAndWritesThatWait) {
  run_with(2, [&] {
    TcpPair ends = pair();
    WaitGroup group;
    group.go([&] {
      EXPECT_TRUE(read_to_end(ends.client).ends_with("<read: use of a closed connection, listener or file>"));
    });
    group.go([&] {
      Result<void> written;
      const std::string block(1 << 20, 'x');
      while (written) written = ends.client.write_all(block);
      EXPECT_TRUE(written.error().closed());
    });
    wait_until_parked(1, WaitReason::kIoRead);
    wait_until_parked(1, WaitReason::kIoWrite);
    ends.client.close();
    group.wait();
    EXPECT_TRUE(ends.client.read(std::span<std::byte>{}).error().closed());
  });
}

// A waiting reader does not keep the close_notify from being sent.
TEST_F(TlsStreamTest, CloseWhileAnotherReadsStillSaysGoodbye) {
  run_with(2, [&] {
    TcpPair ends = pair();
    ASSERT_TRUE(ends.client.write_all("bye"));
    WaitGroup group;
    group.go([&] { (void)read_some(ends.client); });
    wait_until_parked(1, WaitReason::kIoRead);
    ends.client.close();
    group.wait();
    EXPECT_EQ(read_to_end(ends.server), "bye");
  });
}

TEST_F(TlsStreamTest, TheLastWriteSaysThatItIsTheLast) {
  run_with(2, [&] {
    TcpPair ends = pair();
    ASSERT_TRUE(ends.client.write_last("bye"));
    EXPECT_EQ(read_to_end(ends.server), "bye") << "before it is closed";
    EXPECT_TRUE(ends.client.write_all("more").error().is(std::errc::broken_pipe));
    ASSERT_TRUE(ends.server.write_all("answer"));
    EXPECT_EQ(read_some(ends.client), "answer");
    TcpPair plain = tcp_pair();
    ASSERT_TRUE(plain.client.write_last("bye"));
    EXPECT_EQ(read_some(plain.server), "bye");
  });
}

// More than fits into the socket's buffer, and then the end: net::Server waits until the close_notify is
// sent.
TEST_F(TlsStreamTest, AServersLastWordComesAfterAnAnswerThatFillsTheBuffers) {
  run_with(2, [&] {
    Listener listener = listen_on_loopback();
    listener.use_tls(TlsServer::load(server_options()).value());
    const std::string address = listener.address(), answer(3 << 20, 'x');
    Server server(std::move(listener), [&](Session& session) { (void)session.conn().write_all(answer); });
    WaitGroup serving;
    serving.go([&] { EXPECT_TRUE(server.serve()); });
    Conn conn = TlsClient::load(client_options()).value()->dial("tcp", address).value();
    EXPECT_TRUE(read_to_end(conn) == answer);
    server.shutdown(far_away());
    serving.wait();
  });
}

// A client with room for little: most of an answer stays in the server's send queue.
Conn dial_with_little_room(const Endpoint& to) {
  const int room = 4096;
  const auto fd = static_cast<int>(sys::invoke(SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sys::invoke(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  const SocketName name = SocketName::of(to);
  EXPECT_EQ(sys::connect(fd, name.address(), name.length), 0);
  sys::invoke(SYS_fcntl, fd, F_SETFL, O_NONBLOCK);
  return detail::ConnParts::make(detail::DescriptorOwner(Descriptor::open(fd, "dial").value()));
}

// Nobody read the client's close_notify, so the kernel used to reset the connection when the server closed
// it.
TEST_F(TlsStreamTest, AClientThatHasSaidGoodbyeGetsTheWholeAnswer) {
  run_with(2, [&] {
    Listener listener = listen_on_loopback();
    listener.use_tls(TlsServer::load(server_options()).value());
    const Endpoint endpoint = listener.endpoint();
    const std::string answer(2 << 20, 'x');
    WaitGroup asked, said;
    asked.add(1);
    said.add(1);
    Server server(std::move(listener), [&](Session& session) {
      EXPECT_EQ(read_some(session.conn()), "question");
      asked.done();
      said.wait();
      EXPECT_TRUE(session.conn().write_last(answer));
    });
    WaitGroup serving;
    serving.go([&] { EXPECT_TRUE(server.serve()); });
    Conn conn = TlsClient::load(client_options())
                    .value()
                    ->start(dial_with_little_room(endpoint), "localhost")
                    .value();
    ASSERT_TRUE(conn.write_all("question"));
    asked.wait();
    ASSERT_TRUE(conn.close_write());
    said.done();
    const std::string got = read_to_end(conn);
    EXPECT_TRUE(got == answer) << got.size() << " bytes, and the last of them: "
                               << got.substr(got.size() - std::min<std::size_t>(got.size(), 100));
    server.shutdown(far_away());
    serving.wait();
  });
}

// A client with a maximum record of 512 bytes, and a certificate that makes its tickets longer than that.
class SmallClient final : public tls::Side {
 public:
  explicit SmallClient(TlsCertificate certificate) : certificate_(std::move(certificate)) {}
  Result<Begun> begin() override {
    const tls::Owner<SSL_CTX> context(SSL_CTX_new(TLS_client_method()));
    SSL_CTX_set_tlsext_max_fragment_length(context.get(), TLSEXT_max_fragment_length_512);
    SSL_CTX_use_certificate_file(context.get(), certificate_.cert_file.c_str(), SSL_FILETYPE_PEM);
    SSL_CTX_use_PrivateKey_file(context.get(), certificate_.key_file.c_str(), SSL_FILETYPE_PEM);
    Begun begun{tls::Owner<SSL>(SSL_new(context.get())), nullptr};
    SSL_set_connect_state(begun.ssl.get());
    return begun;
  }
  [[nodiscard]] bool is_server() const override { return false; }
  [[nodiscard]] std::chrono::milliseconds handshake_timeout() const override { return 60s; }
  [[nodiscard]] std::string peer() const override { return {}; }

 private:
  const TlsCertificate certificate_;
};

// OpenSSL does not write while it holds part of a message from the peer: the write waits for the rest.
TEST_F(TlsStreamTest, AWriteInTheMiddleOfATicketWaitsForItsEnd) {
  std::vector<std::string> names;
  for (const char letter : {'a', 'b', 'c', 'd', 'e', 'f'}) names.push_back("DNS:" + std::string(60, letter));
  const TlsCertificate mine = authority_.issue("client", {.common_name = "gopher", .names = names});
  run_with(2, [&] {
    TlsServerOptions options = server_options();
    options.client_auth = ClientAuth::kRequire;
    options.client_ca_file = authority_.file();
    const auto owner = TlsServer::load(options).value();
    // client <-> up.server, this goroutine, down.client <-> server
    TcpPair up = tcp_pair(), down = tcp_pair();
    tls::Stream client(detail::ConnParts::descriptor(up.client), std::make_shared<SmallClient>(mine));
    tls::Stream server(detail::ConnParts::descriptor(down.server),
                       std::shared_ptr<tls::Side>(owner, &owner->state()));
    const auto carry = [](Conn& from, Conn& to) { ASSERT_TRUE(to.write_all(read_some(from, 16 << 10))); };
    WaitGroup group;
    group.go([&] { EXPECT_TRUE(client.handshake(nullptr)); });
    group.go([&] { EXPECT_TRUE(server.handshake(nullptr)); });
    carry(up.server, down.client);
    carry(down.client, up.server);
    carry(up.server, down.client);
    group.wait();
    const std::string ticket = read_some(down.client, 16 << 10);
    ASSERT_GT(ticket.size(), 600u) << "more than one record";
    ASSERT_TRUE(up.server.write_all(std::string_view(ticket).substr(0, 600)));
    group.go([&] {
      std::array<std::byte, 8> some;
      EXPECT_TRUE(client.read(some, nullptr, nullptr).error().closed());
    });
    sleep_for(50ms);  // for the reader to have taken the first record
    WaitGroup writing;
    writing.go([&] {
      std::string text = "question";
      struct iovec piece{text.data(), text.size()};
      EXPECT_EQ(why(client.write_all(std::span(&piece, 1), nullptr, false)), "");
    });
    sleep_for(20ms);
    ASSERT_TRUE(up.server.write_all(std::string_view(ticket).substr(600)));
    carry(up.server, down.client);
    writing.wait();
    std::array<std::byte, 8> got;
    EXPECT_EQ(server.read(got, nullptr, nullptr).value(), 8u);
    up.client.close();
    group.wait();
  });
}

// A client whose SSL object the test can access.
class OpenClient final : public tls::Side {
 public:
  Result<Begun> begin() override {
    const tls::Owner<SSL_CTX> context(SSL_CTX_new(TLS_client_method()));
    Begun begun{tls::Owner<SSL>(SSL_new(context.get())), nullptr};
    ssl = begun.ssl.get();
    SSL_set_connect_state(ssl);
    return begun;
  }
  [[nodiscard]] bool is_server() const override { return false; }
  [[nodiscard]] std::chrono::milliseconds handshake_timeout() const override { return 60s; }
  [[nodiscard]] std::string peer() const override { return {}; }
  SSL* ssl = nullptr;
};

// A peer that requested new keys and did not read the answers used to make the reader check for room a
// thousand times a second.
TEST_F(TlsStreamTest, AReaderParksIfItsAnswersAreNotRead) {
  run_with(2, [&] {
    const auto owner = TlsServer::load(server_options()).value();
    const auto side = std::make_shared<OpenClient>();
    LocalPair pair = local_pair();
    tls::Stream client(*pair.here, side);
    tls::Stream server(*pair.there, std::shared_ptr<tls::Side>(owner, &owner->state()));
    WaitGroup shaking, asking, reading;
    shaking.go([&] { EXPECT_TRUE(client.handshake(nullptr)); });
    EXPECT_TRUE(server.handshake(nullptr));
    shaking.wait();
    std::atomic<bool> enough = false;
    std::atomic<std::size_t> asked = 0, got = 0;
    asking.go([&] {
      std::string text = "x";
      for (; !enough; ++asked) {
        ASSERT_EQ(SSL_key_update(side->ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        struct iovec piece{text.data(), text.size()};
        ASSERT_EQ(why(client.write_all(std::span(&piece, 1), nullptr, false)), "");
      }
    });
    reading.go([&] {
      std::array<std::byte, 64> some;
      Result<std::size_t> n = std::size_t{1};
      for (; n && *n > 0; got += n.value_or(0)) n = server.read(some, nullptr, nullptr);
    });
    wait_until_parked(2, WaitReason::kIoWrite);
    // The peer has room again, and continues.
    enough = true;
    reading.go([&] {
      std::array<std::byte, 64> some;
      EXPECT_TRUE(client.read(some, nullptr, nullptr).error().closed());
    });
    asking.wait();
    yield_until([&] { return got == asked; });
    pair.here->close();
    reading.wait();
  });
}

TEST_F(TlsStreamTest, UnixSocketsCarryItToo) {
  run_with(2, [&] {
    const std::string path = authority_.path("socket");
    Listener listener = listen("unix", path).value();
    listener.use_tls(TlsServer::load(server_options()).value());
    WaitGroup group;
    group.go([&] {
      Conn conn = TlsClient::load(client_options()).value()->dial("unix", path).value();
      EXPECT_TRUE(answers(conn));
    });
    Conn conn = listener.accept().value();
    const std::string got = read_some(conn);
    EXPECT_TRUE(conn.write_all(got));
    group.wait();
  });
}

}  // namespace
}  // namespace tuza::net::testing
