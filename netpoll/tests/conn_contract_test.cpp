// What a Conn promises, over memory and over sockets of loopback alike: one expectation for both.
#include <sys/uio.h>
#include <tuza/netpoll/file.h>
#include <tuza/netpoll/file_slice.h>
#include <tuza/netpoll/peer_watch.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/netpoll/socket/socket_queues.h>
#include <tuza/netpoll/tests/file_testing.h>
#include <tuza/netpoll/tests/ground.h>
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/netpoll/tls.h>
#include <tuza/sched/sync/context.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace tuza::net::testing {
namespace {

class ConnContractTest : public OnBothGrounds {};
TUZA_ON_BOTH_GROUNDS(ConnContractTest);

// More than all the buffers of a connection hold.
std::string more_than_fits() { return std::string(std::size_t{32} << 20, 'x'); }

bool is_broken(const Error& error) {
  return error.is(std::errc::broken_pipe) || error.is(std::errc::connection_reset);
}

TEST_P(ConnContractTest, EveryByteArrivesOnceAndInOrderBothWaysAtOnce) {
  std::mt19937_64 random(seed());
  const std::string question = random_bytes(random, static_cast<std::size_t>(scaled(3'000'017)));
  const std::string answer = random_bytes(random, static_cast<std::size_t>(scaled(2'000'003)));
  on_ground([&](Ground& ground) {
    TcpPair pair = ground.pair();
    const auto send = [](Conn& conn, const std::string& text) {
      std::mt19937_64 sizes(text.size());
      for (std::string_view left = text; !left.empty();) {
        const std::size_t n = std::min<std::size_t>(left.size(), sizes() % 150'000);
        ASSERT_TRUE(conn.write_all(left.substr(0, n)));
        left.remove_prefix(n);
      }
      ASSERT_TRUE(conn.close_write());
    };
    WaitGroup group;
    group.go([&] { send(pair.client, question); });
    group.go([&] { send(pair.server, answer); });
    group.go([&] { EXPECT_TRUE(read_to_end(pair.client) == answer); });
    EXPECT_TRUE(read_to_end(pair.server) == question);
    group.wait();
  });
}

TEST_P(ConnContractTest, AReadTakesWhatIsThereAndLeavesTheRest) {
  on_ground([](Ground& ground) {
    TcpPair pair = ground.pair();
    ASSERT_TRUE(pair.client.write_all("abcdef"));
    EXPECT_EQ(read_some(pair.server, 4), "abcd");
    EXPECT_EQ(read_some(pair.server, 4), "ef");
  });
}

TEST_P(ConnContractTest, TheEndOfTheStreamComesBehindItsBytesAndStays) {
  on_ground([](Ground& ground) {
    TcpPair pair = ground.pair();
    ASSERT_TRUE(pair.client.write_all("abc"));
    pair.client.close();
    std::array<std::byte, 4> four{};
    EXPECT_TRUE(pair.server.read_full(four).error().is(Errc::kEndOfStream));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(read_some(pair.server), "");
  });
}

TEST_P(ConnContractTest, AHalfClosedStreamGoesOnInTheOtherDirection) {
  on_ground([](Ground& ground) {
    TcpPair pair = ground.pair();
    ASSERT_TRUE(pair.client.write_all("question"));
    ASSERT_TRUE(pair.client.close_write());
    ASSERT_TRUE(pair.client.close_write());
    EXPECT_TRUE(pair.client.write_all("more").error().is(std::errc::broken_pipe));
    EXPECT_EQ(read_to_end(pair.server), "question");
    ASSERT_TRUE(pair.server.write_all("answer"));
    pair.server.close();
    EXPECT_EQ(read_to_end(pair.client), "answer");
  });
}

TEST_P(ConnContractTest, AnAbortedConnectionIsResetAndWhatHadArrivedIsRead) {
  on_ground([](Ground& ground) {
    TcpPair pair = ground.pair();
    ASSERT_TRUE(pair.client.write_all("last words"));
    std::array<char, 10> words{};
    yield_until([&] { return pair.server.peek(words).value_or(0) == words.size(); });
    ASSERT_TRUE(pair.client.set_linger_zero());
    pair.client.close();
    EXPECT_EQ(read_some(pair.server), "last words");
    std::array<std::byte, 1> one{};
    const Result<std::size_t> n = pair.server.read(one);
    ASSERT_FALSE(n);
    EXPECT_TRUE(n.error().is(std::errc::connection_reset)) << n.error().message();
    EXPECT_TRUE(is_broken(pair.server.write_all("x").error()));
  });
}

TEST_P(ConnContractTest, AReaderAndAWriterThatWaitSeeTheReset) {
  on_ground([](Ground& ground) {
    TcpPair pair = ground.pair();
    WaitGroup group;
    group.go([&] {
      std::array<std::byte, 1> one{};
      const Result<std::size_t> n = pair.server.read(one);
      // The two share one error of the kernel.
      EXPECT_TRUE(n ? *n == 0 : is_broken(n.error()));
    });
    group.go([&] { EXPECT_TRUE(is_broken(pair.server.write_all(more_than_fits()).error())); });
    wait_until_parked(1, WaitReason::kIoRead);
    wait_until_parked(1, WaitReason::kIoWrite);
    ASSERT_TRUE(pair.client.set_linger_zero());
    pair.client.close();
    group.wait();
  });
}

TEST_P(ConnContractTest, ClosingWithUnreadBytesResets) {
  on_ground([](Ground& ground) {
    TcpPair pair = ground.pair();
    ASSERT_TRUE(pair.client.write_all("unread"));
    std::array<char, 6> unread{};
    yield_until([&] { return pair.server.peek(unread).value_or(0) == unread.size(); });
    EXPECT_FALSE(pair.server.all_delivered());
    pair.server.close();
    std::array<std::byte, 1> one{};
    EXPECT_TRUE(pair.client.read(one).error().is(std::errc::connection_reset));
  });
}

TEST_P(ConnContractTest, TheFirstWriteToAClosedPeerIsLostAndALaterOneFails) {
  on_ground([](Ground& ground) {
    TcpPair pair = ground.pair();
    pair.server.close();
    EXPECT_EQ(read_some(pair.client), "");
    ASSERT_TRUE(pair.client.write_all("lost"));
    Result<void> later = pair.client.write_all("x");
    while (later) later = pair.client.write_all("x");
    EXPECT_TRUE(is_broken(later.error())) << later.error().message();
    EXPECT_EQ(read_some(pair.client), "") << "the stream has ended before";
  });
}

TEST_P(ConnContractTest, AReadDeadlineEndsTheWaitAndNoByteIsLost) {
  on_ground([](Ground& ground) {
    TcpPair pair = ground.pair();
    pair.server.set_read_deadline(long_ago());
    ASSERT_TRUE(pair.client.write_all("there"));
    EXPECT_EQ(read_some(pair.server), "<read: deadline exceeded>") << "also if bytes are there";
    pair.server.set_read_deadline(kNoDeadline);
    EXPECT_EQ(read_some(pair.server), "there");
    pair.server.set_read_deadline(time_after_now(1ms));
    EXPECT_EQ(read_some(pair.server), "<read: deadline exceeded>");
    EXPECT_EQ(read_some(pair.server), "<read: deadline exceeded>") << "until it is set again";
    pair.server.set_read_deadline(far_away());
    WaitGroup group;
    group.go([&] { EXPECT_EQ(read_some(pair.server), "<read: deadline exceeded>"); });
    wait_until_parked(1, WaitReason::kIoRead);
    pair.server.set_read_deadline(long_ago());
    group.wait();
    EXPECT_TRUE(pair.server.write_all("the other direction"));
    EXPECT_EQ(read_some(pair.client), "the other direction");
  });
}

TEST_P(ConnContractTest, AWriterWaitsForItsPeerAndAWriteDeadlineEndsTheWait) {
  on_ground([](Ground& ground) {
    TcpPair pair = ground.pair();
    const std::string much = more_than_fits();
    WaitGroup group;
    group.go([&] { EXPECT_TRUE(pair.client.write_all(much).error().timeout()); });
    wait_until_parked(1, WaitReason::kIoWrite);
    pair.client.set_write_deadline(long_ago());
    group.wait();
    EXPECT_TRUE(pair.client.write_all("x").error().timeout()) << "until it is set again";
    pair.client.set_write_deadline(kNoDeadline);
    group.go([&] { EXPECT_TRUE(pair.client.write_all(much)); });
    wait_until_parked(1, WaitReason::kIoWrite);
    WaitGroup reading;
    std::size_t got = 0;
    reading.go([&] { got = read_to_end(pair.server).size(); });
    group.wait();
    pair.client.close();
    reading.wait();
    EXPECT_GT(got, much.size()) << "all of it, and what the first write had sent";
  });
}

TEST_P(ConnContractTest, AWriteTimeoutLimitsEachWait) {
  on_ground([](Ground& ground) {
    TcpPair pair = ground.pair();
    pair.client.set_write_timeout(2ms);
    EXPECT_TRUE(pair.client.write_all(more_than_fits()).error().timeout());
  });
}

TEST_P(ConnContractTest, TheEndOfAContextEndsTheCallAndLeavesTheConnection) {
  on_ground([](Ground& ground) {
    TcpPair pair = ground.pair();
    const auto [reading, cancel_reading] = with_cancel(Context::background());
    const auto [writing, cancel_writing] = with_cancel(Context::background());
    std::array<char, 5> got{};
    WaitGroup group;
    group.go([&] { EXPECT_EQ(pair.server.read(reading, got).error().code(), Errc::kCancelled); });
    group.go([&] {
      EXPECT_EQ(pair.server.write_all(writing, more_than_fits()).error().code(), Errc::kCancelled);
    });
    wait_until_parked(1, WaitReason::kIoRead);
    wait_until_parked(1, WaitReason::kIoWrite);
    cancel_reading();
    cancel_writing();
    group.wait();
    EXPECT_EQ(pair.server.read(reading, got).error().code(), Errc::kCancelled) << "ended before the call";
    ASSERT_TRUE(pair.client.write_all("hello"));
    EXPECT_EQ(read_some(pair.server), "hello");
    EXPECT_EQ(read_some(pair.client, 1), "x");
  });
}

TEST_P(ConnContractTest, CloseEndsEveryCallThatWaitsAndAllLaterOnes) {
  on_ground([](Ground& ground) {
    TcpPair pair = ground.pair();
    WaitGroup group;
    for (int i = 0; i < 2; ++i) {
      group.go(
          [&] { EXPECT_EQ(read_some(pair.client), "<read: use of a closed connection, listener or file>"); });
      group.go([&] { EXPECT_TRUE(pair.client.write_all(more_than_fits()).error().closed()); });
    }
    wait_until_parked(1, WaitReason::kIoRead);
    wait_until_parked(1, WaitReason::kIoWrite);
    wait_until_parked(2, WaitReason::kSemaphore);
    pair.client.close();
    pair.client.close();
    group.wait();
    std::array<char, 1> one{};
    EXPECT_TRUE(pair.client.write_all("x").error().closed());
    EXPECT_TRUE(pair.client.writev_all({}).error().closed());
    EXPECT_TRUE(pair.client.try_write("x").error().closed());
    EXPECT_TRUE(pair.client.peek(one).error().closed());
    EXPECT_TRUE(pair.client.close_write().error().closed());
    EXPECT_TRUE(pair.client.set_no_delay(false).error().closed());
    EXPECT_TRUE(pair.client.set_keep_alive(false).error().closed());
    EXPECT_TRUE(pair.client.set_linger_zero().error().closed());
    EXPECT_TRUE(pair.client.local_endpoint().error().closed());
    EXPECT_TRUE(pair.client.local_address().error().closed());
  });
}

TEST_P(ConnContractTest, WritesOfSeveralGoroutinesDoNotMix) {
  on_ground([](Ground& ground) {
    constexpr std::size_t kPiece = 100'000;
    constexpr int kWriters = 4, kTimes = 5;
    TcpPair pair = ground.pair();
    WaitGroup writers;
    for (int w = 0; w < kWriters; ++w) {
      writers.go([&pair, w] {
        const std::string mine(kPiece, static_cast<char>('a' + w));
        for (int i = 0; i < kTimes; ++i) ASSERT_TRUE(pair.client.write_all(mine));
      });
    }
    WaitGroup reading;
    std::string all;
    reading.go([&] { all = read_to_end(pair.server); });
    writers.wait();
    pair.client.close();
    reading.wait();
    ASSERT_EQ(all.size(), kPiece * kWriters * kTimes);
    for (std::size_t at = 0; at < all.size(); at += kPiece) {
      const std::string_view piece = std::string_view(all).substr(at, kPiece);
      EXPECT_EQ(piece.find_first_not_of(piece.front()), piece.npos) << "at " << at;
    }
  });
}

TEST_P(ConnContractTest, SeveralReadersShareTheBytes) {
  on_ground([](Ground& ground) {
    const auto size = static_cast<std::size_t>(scaled(2'000'000));
    TcpPair pair = ground.pair();
    std::atomic<std::size_t> got{0};
    WaitGroup group;
    for (int i = 0; i < 4; ++i) {
      group.go([&] {
        for (std::string text; !(text = read_some(pair.server, 3'000)).empty();) got += text.size();
      });
    }
    ASSERT_TRUE(pair.client.write_all(std::string(size, 'x')));
    pair.client.close();
    group.wait();
    EXPECT_EQ(got.load(), size);
  });
}

TEST_P(ConnContractTest, TheEndsKnowEachOthersAddress) {
  on_ground([](Ground& ground) {
    Listener listener = ground.listen();
    EXPECT_NE(listener.endpoint().port(), 0);
    EXPECT_EQ(listener.address(), to_string(listener.endpoint()));
    TcpPair pair = ground.connect(listener);
    EXPECT_EQ(pair.client.remote_endpoint().value(), listener.endpoint());
    EXPECT_EQ(pair.server.local_endpoint().value(), listener.endpoint());
    EXPECT_EQ(pair.client.local_endpoint().value(), pair.server.remote_endpoint().value());
    EXPECT_EQ(pair.client.local_address().value(), pair.server.remote_address().value());
    EXPECT_EQ(pair.client.remote_address().value(), listener.address());
    TcpPair second = ground.connect(listener);
    EXPECT_NE(second.client.local_endpoint().value(), pair.client.local_endpoint().value());
    pair.server.close();
    EXPECT_EQ(pair.server.remote_endpoint().value(), pair.client.local_endpoint().value())
        << "known for as long as the object";
    EXPECT_FALSE(pair.client.tls_info());
    EXPECT_TRUE(pair.client.handshake());
  });
}

// Some systems do not tell what the peer's has acknowledged.
bool tells_what_is_delivered(Conn& socket) {
  const auto told = [](int fd) { return static_cast<long>(socket_queues::unacknowledged(fd).has_value()); };
  return detail::ConnParts::descriptor(socket).control("ioctl", told).value() != 0;
}

TEST_P(ConnContractTest, APeekTakesNothing) {
  on_ground([](Ground& ground) {
    TcpPair pair = ground.pair();
    const bool tells = std::get<Over>(GetParam()) == Over::kMemory || tells_what_is_delivered(pair.server);
    std::array<char, 3> three{};
    EXPECT_TRUE(pair.server.peek(three).error().is(std::errc::operation_would_block));
    EXPECT_EQ(pair.server.all_delivered(), tells);
    ASSERT_TRUE(pair.client.write_all("abcd"));
    yield_until([&] { return pair.server.peek(three).value_or(0) == 3; });
    EXPECT_EQ(std::string_view(three.data(), 3), "abc");
    EXPECT_FALSE(pair.server.all_delivered());
    EXPECT_EQ(read_some(pair.server), "abcd");
    EXPECT_EQ(pair.server.all_delivered(), tells);
    pair.client.close();
    EXPECT_EQ(read_some(pair.server), "");
    EXPECT_EQ(pair.server.peek(three).value(), 0u);
  });
}

TEST_P(ConnContractTest, TryWriteTakesWhatFitsAndNeverWaits) {
  on_ground([](Ground& ground) {
    TcpPair pair = ground.pair();
    const std::string much = more_than_fits();
    std::size_t sent = 0;
    for (std::size_t n = 1; n > 0; sent += n) n = pair.client.try_write(much).value();
    EXPECT_GT(sent, 0u);
    WaitGroup group;
    std::string got;
    group.go([&] { got = read_to_end(pair.server); });
    pair.client.close();
    group.wait();
    EXPECT_EQ(got.size(), sent);
  });
}

TEST_P(ConnContractTest, PiecesAndFilesArriveInOrder) {
  const TemporaryDirectory folder;
  put_file(folder / "file", "0123456789");
  on_ground([&](Ground& ground) {
    TcpPair pair = ground.pair();
    std::string first = "one ", second = "two ";
    std::array<struct iovec, 3> pieces{
        {{first.data(), first.size()}, {nullptr, 0}, {second.data(), second.size()}}};
    ASSERT_TRUE(pair.client.writev_all(pieces));
    const File file = File::open(folder / "file").value();
    const File::Number number(file);
    FileSlice slice{number.fd(), 3, 5};
    ASSERT_TRUE(pair.client.send_file(slice, "head "));
    EXPECT_EQ(slice.length, 0u);
    ASSERT_TRUE(pair.client.write_last(" end"));
    pair.client.close();
    EXPECT_EQ(read_to_end(pair.server), "one two head 34567 end");
  });
}

class OnDemand final : public LazyBuffer {
 public:
  std::span<std::byte> take() override {
    ++taken;
    return space_;
  }
  void give_back() override { ++given_back; }
  std::atomic<int> taken{0}, given_back{0};

 private:
  std::array<std::byte, 16> space_{};
};

TEST_P(ConnContractTest, ABufferOnDemandIsTakenWhenThereIsSomethingToRead) {
  on_ground([](Ground& ground) {
    TcpPair pair = ground.pair();
    OnDemand buffer;
    WaitGroup group;
    group.go([&] { EXPECT_EQ(detail::ConnParts::read(pair.server, buffer).value(), 5u); });
    wait_until_parked(1, WaitReason::kIoRead);
    EXPECT_EQ(buffer.taken.load(), buffer.given_back.load()) << "none is held meanwhile";
    ASSERT_TRUE(pair.client.write_all("hello"));
    group.wait();
    EXPECT_EQ(buffer.taken.load(), buffer.given_back.load() + 1);
    pair.server.set_read_deadline(long_ago());
    EXPECT_TRUE(detail::ConnParts::read(pair.server, buffer).error().timeout());
    EXPECT_EQ(buffer.taken.load(), buffer.given_back.load() + 1);
  });
}

TEST_P(ConnContractTest, APeerWatchSeesThePeerGoAndTheOwnClose) {
  on_ground([](Ground& ground) {
    for (int how = 0; how < 4; ++how) {
      TcpPair pair = ground.pair();
      PeerWatch watch(pair.server, with_cancel(Context::background()));
      ASSERT_TRUE(pair.client.write_all("unread"));  // does not hide the end
      EXPECT_FALSE(watch.context().done());
      if (how == 0) pair.client.close();
      if (how == 1) {
        ASSERT_TRUE(pair.client.close_write());
      }
      if (how == 2) {
        ASSERT_TRUE(pair.client.set_linger_zero());
        pair.client.close();
      }
      if (how == 3) pair.server.close();
      watch.context().wait();
      EXPECT_EQ(watch.context().cause().code(), Errc::kClosed);
    }
    TcpPair pair = ground.pair();
    pair.client.close();
    EXPECT_EQ(read_some(pair.server), "");
    const PeerWatch late(pair.server, with_cancel(Context::background()));
    late.context().wait();
  });
}

}  // namespace
}  // namespace tuza::net::testing
