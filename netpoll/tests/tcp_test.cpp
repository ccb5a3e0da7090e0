// TCP connections: every byte arrives, once and in order; errors are values.
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/netpoll/tests/netpoll_testing.h>

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>

namespace tuza::net::testing {
namespace {

class TcpTest : public WithProcs {};
TUZA_WITH_PROCS(TcpTest);

// More than all the buffers between two sockets of one machine can hold.
constexpr std::size_t kLarge = std::size_t{32} << 20;

std::size_t large() { return kLarge / (tuza::testing::scaled(100) < 100 ? 2 : 1); }

TEST_P(TcpTest, BytesGoBothWays) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(pair.client.write_all("question"));
      ASSERT_EQ(read_some(pair.server), "question");
      ASSERT_TRUE(pair.server.write_all("answer"));
      ASSERT_EQ(read_some(pair.client), "answer");
    }
    EXPECT_EQ(to_string(pair.client.remote_endpoint().value()),
              to_string(pair.server.local_endpoint().value()));
    EXPECT_EQ(to_string(pair.client.local_endpoint().value()),
              to_string(pair.server.remote_endpoint().value()));
  });
}

bool is_probed(Conn& conn) {
  int on = 0;
  socklen_t size = sizeof on;
  const Result<long> asked = detail::ConnParts::descriptor(conn).control(
      "getsockopt", [&](int fd) { return long{::getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &size)}; });
  return asked == 0 && on != 0;
}

TEST_P(TcpTest, APeerThatHasVanishedIsNoticed) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    EXPECT_TRUE(is_probed(pair.client));
    EXPECT_TRUE(is_probed(pair.server)) << "as its listener says";
    ASSERT_TRUE(pair.client.set_keep_alive(false));
    EXPECT_FALSE(is_probed(pair.client));
  });
}

TEST_P(TcpTest, ReadTakesWhatIsThereAndLeavesTheRest) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    ASSERT_TRUE(pair.client.write_all("abcdef"));
    EXPECT_EQ(read_some(pair.server, 4), "abcd");
    EXPECT_EQ(read_some(pair.server, 4), "ef");
  });
}

TEST_P(TcpTest, TheEndOfOneDirectionLeavesTheOtherOpen) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    ASSERT_TRUE(pair.client.write_all("all I have"));
    ASSERT_TRUE(pair.client.close_write());
    EXPECT_EQ(read_to_end(pair.server), "all I have");
    EXPECT_EQ(read_some(pair.server), "") << "the end stays";
    ASSERT_TRUE(pair.server.write_all("thank you"));
    EXPECT_EQ(read_some(pair.client), "thank you");
    EXPECT_TRUE(pair.client.write_all("more").error().is(std::errc::broken_pipe));
  });
}

TEST_P(TcpTest, ReadFullWaitsForEveryByteOrSaysThatTheStreamEnded) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    WaitGroup group;
    group.go([&pair] {
      for (const char* piece : {"ab", "c", "def", "gh"}) {
        ASSERT_TRUE(pair.client.write_all(piece));
        yield();
      }
      pair.client.close();
    });
    std::array<char, 6> six;
    ASSERT_TRUE(pair.server.read_full(std::as_writable_bytes(std::span(six))));
    EXPECT_EQ(std::string_view(six.data(), six.size()), "abcdef");
    EXPECT_TRUE(pair.server.read_full(std::as_writable_bytes(std::span(six))).error().is(Errc::kEndOfStream));
    group.wait();
  });
}

TEST_P(TcpTest, NothingToWriteIsWrittenAtOnce) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    EXPECT_TRUE(pair.client.write_all(""));
    std::array<struct iovec, 3> empty{};
    EXPECT_TRUE(pair.client.writev_all(empty));
    EXPECT_TRUE(pair.client.writev_all({}));
    fill(detail::ConnParts::descriptor(pair.client));
    EXPECT_TRUE(pair.client.write_all("")) << "even if there is no room";
  });
}

TEST_P(TcpTest, AWriteLargerThanAllBuffersWaitsForTheReader) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    std::mt19937_64 random(seed());
    const std::string data = random_bytes(random, large());
    std::atomic<bool> done{false};
    WaitGroup group;
    group.go([&] {
      EXPECT_TRUE(pair.client.write_all(data));
      done = true;
      pair.client.close();
    });
    wait_until_parked(1, WaitReason::kIoWrite);
    EXPECT_FALSE(done);
    EXPECT_TRUE(read_to_end(pair.server) == data);
    group.wait();
  });
}

// The pieces of a gathered write: none lost, none doubled, wherever the system splits the write.
TEST_P(TcpTest, GatheredWritesSendEveryPieceInOrder) {
  run_with(GetParam(), [] {
    std::mt19937_64 random(seed());
    const std::string data = random_bytes(random, large());
    std::vector<struct iovec> pieces;  // more than one call can take: empty, tiny and large ones
    std::string storage = data;
    for (std::size_t at = 0; at < data.size();) {
      const std::size_t most = pieces.size() < 5'000 ? 50 : 100'000;
      const std::size_t n = std::min<std::size_t>(random() % most, data.size() - at);
      pieces.push_back({.iov_base = storage.data() + at, .iov_len = n});
      at += n;
    }
    pieces.push_back({.iov_base = nullptr, .iov_len = 0});
    ASSERT_GT(pieces.size(), 5'000u);
    TcpPair pair = tcp_pair();
    WaitGroup group;
    group.go([&] {
      EXPECT_TRUE(pair.client.writev_all(pieces));
      pair.client.close();
    });
    EXPECT_TRUE(read_to_end(pair.server) == data);
    group.wait();
  });
}

TEST_P(TcpTest, OneWriteIsNotTornApartByAnother) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    constexpr std::size_t kBlock = 1 << 20;
    constexpr std::size_t kWriters = 4;
    WaitGroup group;
    for (std::size_t w = 0; w < kWriters; ++w) {
      group.go([&pair, w] {
        const std::string block(kBlock, static_cast<char>('a' + w));
        EXPECT_TRUE(pair.client.write_all(block));
      });
    }
    std::string all(kBlock * kWriters, '\0');
    ASSERT_TRUE(pair.server.read_full(std::as_writable_bytes(std::span(all))));
    for (std::size_t at = 0; at < all.size(); at += kBlock) {
      EXPECT_EQ(std::ranges::count(all.substr(at, kBlock), all[at]), static_cast<std::ptrdiff_t>(kBlock));
    }
    group.wait();
  });
}

TEST_P(TcpTest, ManyReadersOfOneConnectionGetEachByteOnce) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    const int bytes_sent = scaled(5'000);
    std::atomic<int> received{0};
    WaitGroup group;
    for (int i = 0; i < 5; ++i) {
      group.go([&] {
        for (std::string got; !(got = read_some(pair.server, 7)).empty();) {
          received += static_cast<int>(got.size());
        }
      });
    }
    for (int i = 0; i < bytes_sent; ++i) {
      ASSERT_TRUE(pair.client.write_all("x"));
      if (i % 16 == 0) yield();
    }
    pair.client.close();
    group.wait();
    EXPECT_EQ(received, bytes_sent);
  });
}

// -- The peer closes.

TEST_P(TcpTest, AResetIsAnErrorForReaderAndWriterAndNoSignal) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    WaitGroup group;
    group.go([&pair] {
      const std::string data(kLarge, 'x');
      const Result<void> written = pair.client.write_all(data);
      ASSERT_FALSE(written);
      EXPECT_TRUE(written.error().is(std::errc::connection_reset)) << written.error().message();
      // SIGPIPE would end the process here.
      EXPECT_TRUE(pair.client.write_all(data).error().is(std::errc::broken_pipe));
    });
    wait_until_parked(1, WaitReason::kIoWrite);
    ASSERT_TRUE(pair.server.set_linger_zero());
    pair.server.close();
    group.wait();
    EXPECT_EQ(read_some(pair.client), "") << "the error was reported; what is left is the end";
  });
}

TEST_P(TcpTest, AResetWakesAReader) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    WaitGroup group;
    group.go([&pair] { EXPECT_EQ(read_some(pair.client), "<read: Connection reset by peer>"); });
    wait_until_parked(1, WaitReason::kIoRead);
    ASSERT_TRUE(pair.server.set_linger_zero());
    pair.server.close();
    group.wait();
  });
}

TEST_P(TcpTest, WritesToAPeerThatHasGoneEndInAnErrorNotInASignal) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    pair.server.close();
    Result<void> written;
    yield_until([&] { return !(written = pair.client.write_all("x")); });
    EXPECT_TRUE(written.error().is(std::errc::broken_pipe) || written.error().is(std::errc::connection_reset))
        << written.error().message();
    std::array<char, 1> byte{'x'};
    struct iovec piece{.iov_base = byte.data(), .iov_len = 1};
    EXPECT_FALSE(pair.client.writev_all(std::span(&piece, 1)));
  });
}

// -- Deadlines.

TEST_P(TcpTest, AReadDeadlineLeavesTheConnectionUsable) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    pair.client.set_read_deadline(Clock::now() + 1ms);
    EXPECT_EQ(read_some(pair.client), "<read: deadline exceeded>");
    EXPECT_EQ(read_some(pair.client), "<read: deadline exceeded>") << "it stays until set again";
    ASSERT_TRUE(pair.server.write_all("late"));
    EXPECT_EQ(read_some(pair.client), "<read: deadline exceeded>") << "even if there is something to read";
    ASSERT_TRUE(pair.client.write_all("out")) << "the other direction";
    EXPECT_EQ(read_some(pair.server), "out");
    pair.client.set_read_deadline(far_away());
    EXPECT_EQ(read_some(pair.client), "late");
    pair.client.set_read_deadline(long_ago());
    EXPECT_EQ(read_some(pair.client), "<read: deadline exceeded>");
    pair.client.set_read_deadline(kNoDeadline);
    ASSERT_TRUE(pair.server.write_all("later"));
    EXPECT_EQ(read_some(pair.client), "later");
  });
}

TEST_P(TcpTest, AWriteDeadlineEndsAWriteThatWaitsAndLeavesTheConnectionUsable) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    const std::string data(kLarge, 'f');
    pair.client.set_write_deadline(Clock::now() + 1ms);
    EXPECT_TRUE(pair.client.write_all(data).error().timeout());
    EXPECT_TRUE(pair.client.write_all("x").error().timeout()) << "it stays until set again";
    ASSERT_TRUE(pair.server.write_all("in")) << "the other direction";
    EXPECT_EQ(read_some(pair.client), "in");
    pair.client.set_write_deadline(kNoDeadline);
    WaitGroup group;
    group.go([&pair] {
      EXPECT_TRUE(pair.client.write_all("y"));
      pair.client.close();
    });
    const std::string all = read_to_end(pair.server);
    group.wait();
    EXPECT_TRUE(all == std::string(all.size() - 1, 'f') + 'y');
  });
}

TEST_P(TcpTest, AWriteTimeoutIsForEachWaitNotForTheWrite) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    pair.client.set_write_timeout(1ms);
    const std::string data(kLarge, 'd');
    EXPECT_TRUE(pair.client.write_all(data).error().timeout()) << "nobody reads";
    EXPECT_TRUE(pair.client.write_all("x").error().timeout()) << "it stays, as a deadline does";
    pair.client.set_write_deadline(kNoDeadline);
    pair.client.set_write_timeout(1h);
    WaitGroup group;
    group.go([&] {
      EXPECT_TRUE(pair.client.write_all(data));
      EXPECT_TRUE(pair.client.write_all("!"));
      pair.client.close();
    });
    wait_until_parked(1, WaitReason::kIoWrite);
    const std::string all = read_to_end(pair.server);
    EXPECT_GT(all.size(), data.size());
    EXPECT_TRUE(all == std::string(all.size() - 1, 'd') + '!');
    group.wait();
  });
}

}  // namespace
}  // namespace tuza::net::testing
