// copy() and relay(): from stream to stream.
#include <tuza/netpoll/conn_stream.h>
#include <tuza/netpoll/copy.h>
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/poll/splice.h>
#include <tuza/netpoll/poll/splice_pipe.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/netpoll/tests/netpoll_testing.h>

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace tuza::net {
namespace {

using namespace testing;

class CopyTest : public WithProcs {};
TUZA_WITH_PROCS(CopyTest);

bool sees_a_reset(Conn& conn) {
  std::array<std::byte, 1> byte;
  const Result<std::size_t> n = conn.read(byte);
  return !n && n.error().is(std::errc::connection_reset);
}

std::string much(char c) { return std::string(std::size_t{3} << 20, c); }

TEST_P(CopyTest, EverythingAndTheNumberOfBytes) {
  run_with(GetParam(), [] {
    TcpPair from = tcp_pair(), to = tcp_pair();
    std::mt19937_64 random(seed());
    const std::string sent = random_bytes(random, 2'000'003);
    WaitGroup group;
    group.go([&] {
      EXPECT_TRUE(from.client.write_all(sent));
      EXPECT_TRUE(from.client.close_write());
    });
    group.go([&] {
      EXPECT_EQ(copy(to.client, from.server).value(), sent.size());
      EXPECT_TRUE(to.client.close_write());
    });
    EXPECT_TRUE(read_to_end(to.server) == sent);
    group.wait();
  });
}

TEST_P(CopyTest, ItEndsWithItsContextAndWithEitherSide) {
  run_with(GetParam(), [] {
    TcpPair from = tcp_pair(), to = tcp_pair();
    auto [ctx, cancel] = with_cancel(Context::background());
    WaitGroup group;
    group.go([&, ctx] { EXPECT_TRUE(copy(ctx, to.client, from.server).error().cancelled()); });
    wait_until_parked(1, WaitReason::kIoRead);
    cancel();
    group.wait();
    to.client.close();
    ASSERT_TRUE(from.client.write_all("x"));
    EXPECT_TRUE(copy(to.client, from.server).error().closed());
  });
}

TEST_P(CopyTest, ARelayPassesBothDirectionsAndTheirEnds) {
  run_with(GetParam(), [] {
    TcpPair left = tcp_pair(), right = tcp_pair();
    WaitGroup group;
    group.go([&] {
      const Relayed relayed = relay(left.server, right.client).value();
      EXPECT_EQ(relayed.first_to_second, much('q').size());
      EXPECT_EQ(relayed.second_to_first, much('a').size());
    });
    group.go([&] {
      EXPECT_TRUE(left.client.write_all(much('q')));
      EXPECT_TRUE(left.client.close_write()) << "the other direction goes on";
    });
    group.go([&] {
      EXPECT_TRUE(read_to_end(right.server) == much('q'));
      EXPECT_TRUE(right.server.write_all(much('a')));
      EXPECT_TRUE(right.server.close_write());
    });
    EXPECT_TRUE(read_to_end(left.client) == much('a'));
    group.wait();
  });
}

TEST_P(CopyTest, AnErrorOfOneDirectionEndsTheRelay) {
  run_with(GetParam(), [] {
    TcpPair left = tcp_pair(), right = tcp_pair();
    WaitGroup group;
    group.go([&] { EXPECT_FALSE(relay(left.server, right.client)); });
    wait_until_parked(2, WaitReason::kIoRead);
    ASSERT_TRUE(right.server.set_linger_zero());
    right.server.close();
    group.wait();
    EXPECT_TRUE(sees_a_reset(left.client)) << "an end would look like the whole";
  });
}

TEST_P(CopyTest, AResetFollowsWhatWasSentBefore) {
  run_with(GetParam(), [] {
    TcpPair left = tcp_pair(), right = tcp_pair();
    WaitGroup group;
    group.go([&] { EXPECT_TRUE(relay(left.server, right.client).error().is(std::errc::connection_reset)); });
    ASSERT_TRUE(right.server.write_all("a part"));
    EXPECT_EQ(read_some(left.client), "a part");
    ASSERT_TRUE(right.server.set_linger_zero());
    right.server.close();
    EXPECT_TRUE(sees_a_reset(left.client));
    group.wait();
  });
}

TEST_P(CopyTest, ARelayEndsWithItsContext) {
  run_with(GetParam(), [] {
    TcpPair left = tcp_pair(), right = tcp_pair();
    auto [ctx, cancel] = with_cancel(Context::background());
    WaitGroup group;
    group.go([&, ctx] { EXPECT_TRUE(relay(ctx, left.server, right.client).error().cancelled()); });
    wait_until_parked(2, WaitReason::kIoRead);
    cancel();
    group.wait();
    EXPECT_EQ(read_some(left.client), "") << "nothing has broken off";
  });
}

// The peers of a relay: what is written to `left` arrives at `right`, and the other way round.
struct Relay {
  TcpPair in = tcp_pair(), out = tcp_pair();
  Conn& left = in.client;
  Conn& right = out.server;
  WaitGroup group;
  std::optional<Result<Relayed>> result;  // when the group has ended
  std::atomic<bool> ended = false;

  // The way out holds little: the relay soon waits for `right` to read.
  void narrow() {
    const auto set = [](Conn& conn, int name) {
      EXPECT_TRUE(detail::ConnParts::descriptor(conn).control("setsockopt", [name](int fd) {
        const int bytes = 128 << 10;
        return long{::setsockopt(fd, SOL_SOCKET, name, &bytes, sizeof bytes)};
      }));
    };
    set(out.client, SO_SNDBUF);
    set(right, SO_RCVBUF);
  }
  void start(const Context& ctx = Context::background()) {
    group.go([this, ctx] {
      result = relay(ctx, in.server, out.client);
      ended = true;
    });
  }
};

// Portions around the size of the buffer, with rests that the sockets hold back: the ways change in the middle.
TEST_P(CopyTest, BytesKeepTheirOrderOnAllWays) {
  run_with(GetParam(), [] {
    Relay relay;
    relay.start();
    std::mt19937_64 random(seed());
    std::string sent;
    for (const std::size_t size : {1u, 32'767u, 32'768u, 32'769u, 700'000u, 100u, 65'536u, 2'000'000u, 3u}) {
      sent += random_bytes(random, size);
    }
    WaitGroup group;
    group.go([&] {
      for (std::size_t at = 0; at < sent.size();) {
        const std::size_t size = std::min<std::size_t>(random() % 200'000 + 1, sent.size() - at);
        ASSERT_TRUE(relay.left.write_all(std::string_view(sent).substr(at, size)));
        at += size;
        if (random() % 4 == 0) yield();
      }
      EXPECT_TRUE(relay.left.close_write());
    });
    EXPECT_TRUE(read_to_end(relay.right) == sent);
    group.wait();
    EXPECT_TRUE(relay.right.write_all("and back"));
    EXPECT_TRUE(relay.right.close_write());
    EXPECT_EQ(read_to_end(relay.left), "and back");
    relay.group.wait();
    EXPECT_EQ((*relay.result)->first_to_second, sent.size());
    EXPECT_EQ((*relay.result)->second_to_first, 8u);
  });
}

// Whoever counts what has been received must have done so when the other side can answer to it.
TEST_P(CopyTest, SplicedBytesAreReportedBeforeTheyArrive) {
  if constexpr (!SplicePipe::kAvailable) return;
  run_with(GetParam(), [] {
    TcpPair from = tcp_pair(), to = tcp_pair();
    using detail::ConnParts;
    const auto arrived = [&] {
      char byte = 0;
      return ConnParts::descriptor(to.server)
          .control("recv",
                   [&](int fd) { return static_cast<long>(::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT)); })
          .has_value();
    };
    std::vector<std::size_t> portions;
    const auto taken = [&](std::size_t bytes) {
      EXPECT_FALSE(arrived());
      portions.push_back(bytes);
    };
    ASSERT_TRUE(from.client.write_all("all of it, and more"));
    ASSERT_TRUE(ConnParts::descriptor(from.server).wait_for_data(nullptr));
    const Spliced spliced =
        splice_received(ConnParts::descriptor(to.client), ConnParts::descriptor(from.server), 9,
                        Context::background(), taken);
    EXPECT_EQ(spliced.bytes, 9u);
    EXPECT_EQ(portions, std::vector<std::size_t>{9});
    yield_until(arrived);
  });
}

TEST_P(CopyTest, AnIdleRelayHoldsNoPipe) {
  if constexpr (!SplicePipe::kAvailable) return;
  run_with(GetParam(), [] {
    std::vector<std::unique_ptr<Relay>> relays;
    for (std::size_t i = 0; i < 2 * SplicePipe::kKeptMax; ++i) {
      relays.push_back(std::make_unique<Relay>());
      relays.back()->narrow();
      relays.back()->start();
    }
    // All at once: the receivers read nothing until each pipe is in use.
    WaitGroup group;
    for (const auto& relay : relays) {
      group.go([&relay] { EXPECT_TRUE(relay->left.write_all(std::string(4 << 20, 'x'))); });
    }
    yield_until([&] { return SplicePipe::open_pipes() >= relays.size(); });
    for (const auto& relay : relays) {
      group.go([&relay] {
        std::string all(4 << 20, '\0');
        EXPECT_TRUE(relay->right.read_full(std::as_writable_bytes(std::span(all))));
      });
    }
    group.wait();
    yield_until([] { return SplicePipe::open_pipes() <= SplicePipe::kKeptMax; });
    for (const auto& relay : relays) {
      EXPECT_FALSE(relay->ended) << "it waits for more";
      relay->left.close();
      relay->right.close();
      relay->group.wait();
    }
  });
}

// The receiver does not read, so the pipe is full when the relay ends: its bytes are nobody else's.
TEST_P(CopyTest, APipeWithBytesInItIsNotUsedAgain) {
  if constexpr (!SplicePipe::kAvailable) return;
  run_with(GetParam(), [] {
    for (const bool reset : {false, true}) {
      Relay broken;
      const auto [ctx, cancel] = with_cancel(Context::background());
      broken.narrow();
      broken.start(ctx);
      WaitGroup group;
      group.go([&] { EXPECT_FALSE(broken.left.write_all(std::string(32 << 20, 'x'))); });
      wait_until_parked(2, WaitReason::kIoWrite);  // the sender, and the relay that fills the pipe
      if (reset) {
        EXPECT_TRUE(broken.right.set_linger_zero());
        broken.right.close();
      } else {
        cancel();
      }
      broken.group.wait();
      group.wait();
      EXPECT_FALSE(*broken.result);
      Relay next;
      next.start();
      group.go([&] {
        EXPECT_TRUE(next.left.write_all(much('y')));
        EXPECT_TRUE(next.left.close_write());
      });
      EXPECT_TRUE(read_to_end(next.right) == much('y'));
      EXPECT_TRUE(next.right.close_write());
      next.group.wait();
      group.wait();
    }
  });
}

// The descriptors are used up while the connections are open.
TEST_P(CopyTest, WithoutDescriptorsForAPipeItCopies) {
  run_with(GetParam(), [] {
    Relay relay;
    relay.start();
    const std::size_t kept = SplicePipe::open_pipes();
    std::vector<SplicePipe> all_kept;
    for (std::size_t i = 0; i < kept; ++i) all_kept.push_back(SplicePipe::take());
    struct rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit few = before;
    few.rlim_cur = std::min<rlim_t>(before.rlim_max, 4096);  // more than other tests have open
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    EXPECT_EQ(static_cast<bool>(SplicePipe::take()), SplicePipe::kAvailable) << "then the kernel refuses it";
    std::vector<int> used;
    for (int fd = 0; (fd = ::dup(2)) >= 0;) used.push_back(fd);
    std::vector<SplicePipe> again;  // what the successful attempt has left
    while (SplicePipe pipe = SplicePipe::take()) again.push_back(std::move(pipe));
    WaitGroup group;
    group.go([&] {
      EXPECT_TRUE(relay.left.write_all(much('x')));
      EXPECT_TRUE(relay.left.close_write());
    });
    EXPECT_TRUE(read_to_end(relay.right) == much('x'));
    EXPECT_EQ(SplicePipe::open_pipes(), kept + again.size());
    for (const int fd : used) ::close(fd);
    few.rlim_cur = 8 * SplicePipe::open_pipes();
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    EXPECT_FALSE(SplicePipe::take()) << "pipes have a quarter of the descriptors, and no more";
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_TRUE(relay.right.close_write());
    relay.group.wait();
    group.wait();
    EXPECT_EQ((*relay.result)->first_to_second, much('x').size());
  });
}

class ConnStreamTest : public WithProcs {};
TUZA_WITH_PROCS(ConnStreamTest);

TEST_P(ConnStreamTest, AConversationInLines) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    WaitGroup group;
    group.go([&] {
      ConnStream server(pair.server);
      for (std::string line; std::getline(server, line);) server << "got " << line << std::endl;
      EXPECT_TRUE(server.eof());
      EXPECT_FALSE(server.error());
      server.clear();
      server << "bye";  // the destructor writes it
    });
    {
      ConnStream client(pair.client);
      for (int i = 0; i < 3; ++i) {
        client << "line " << i << '\n' << std::flush;
        std::string answer;
        ASSERT_TRUE(std::getline(client, answer));
        EXPECT_EQ(answer, "got line " + std::to_string(i));
      }
      EXPECT_TRUE(pair.client.close_write());
    }
    group.wait();
    EXPECT_EQ(read_some(pair.client), "bye");
  });
}

TEST_P(ConnStreamTest, LongAndShortTextsInOrder) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    std::string expected;
    WaitGroup group;
    for (const std::size_t size : {1u, 4095u, 4096u, 4097u, 100'000u, 7u}) {
      expected += std::string(size, static_cast<char>('a' + size % 26));
    }
    group.go([&] {
      ConnStream out(pair.client);
      for (const std::size_t size : {1u, 4095u, 4096u, 4097u, 100'000u, 7u}) {
        out << std::string(size, static_cast<char>('a' + size % 26));
      }
      out << std::flush;
      EXPECT_TRUE(pair.client.close_write());
    });
    std::string all;
    ConnStream in(pair.server);
    for (char c; in.get(c);) all += c;
    group.wait();
    EXPECT_TRUE(all == expected);
  });
}

TEST_P(ConnStreamTest, ErrorsSetTheBitsAndAreKept) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    ConnStream stream(pair.client);
    pair.client.set_read_deadline(long_ago());
    std::string word;
    EXPECT_FALSE(stream >> word);
    EXPECT_TRUE(stream.error().value().timeout());
    pair.server.close();
    pair.client.close();
    stream.clear();
    EXPECT_FALSE(stream << "x" << std::flush);
    EXPECT_TRUE(stream.bad());
  });
}

}  // namespace
}  // namespace tuza::net
