// Descriptors: recycled safely, read with as few system calls as possible, closed while in use.
#include <tuza/netpoll/poll/descriptor.h>
#include <tuza/netpoll/poll/descriptor_pool.h>
#include <tuza/netpoll/socket/conn_parts.h>
#include <tuza/netpoll/tests/netpoll_testing.h>

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <tuza/sched/arch/calls.h>
#include <tuza/sched/arch/syscall.h>
#include <tuza/sched/rt/base/clock.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

namespace tuza::net::testing {
namespace {

using Side = Descriptor::Side;

class DescriptorTest : public WithProcs {};
TUZA_WITH_PROCS(DescriptorTest);

bool is_open(int fd) { return sys::invoke(SYS_fcntl, fd, F_GETFD) >= 0; }

// Counts the reader's requests: take() once before each system call, give_back() after each that read
// nothing.
class CountingBuffer final : public LazyBuffer {
 public:
  std::span<std::byte> take() override {
    ++takes;
    return buffer_;
  }
  void give_back() override { ++in_vain; }

  std::atomic<int> takes{0};
  std::atomic<int> in_vain{0};

 private:
  std::array<std::byte, 64> buffer_{};
};

// -- The pool.

TEST(DescriptorPool, GivesOutEachDescriptorOnceAndFindsItByIndex) {
  std::set<Descriptor*> taken;
  for (int i = 0; i < 3000; ++i) {  // more than two slabs
    Descriptor* d = DescriptorPool::take();
    ASSERT_NE(d, nullptr);
    ASSERT_TRUE(taken.insert(d).second);
    ASSERT_EQ(Descriptor::from_cookie(d->cookie()), d);
    ASSERT_EQ(DescriptorPool::at(static_cast<std::uint32_t>(d->cookie())), d);
  }
  for (Descriptor* d : taken) DescriptorPool::put(d);
  EXPECT_TRUE(taken.contains(DescriptorPool::take())) << "the memory was used again";
}

TEST(DescriptorPool, HasNothingAtAnIndexThatWasNeverMade) {
  EXPECT_EQ(DescriptorPool::at(~0u), nullptr);
  EXPECT_EQ(DescriptorPool::at(4'000'000), nullptr);
  EXPECT_EQ(Descriptor::from_cookie(~std::uint64_t{0}), nullptr) << "the cookie of the poller itself";
}

// -- Reuse.

TEST(DescriptorReuse, AnEventForARecycledDescriptorIsDropped) {
  run_with(1, [] {
    LocalPair old = local_pair();
    Descriptor* const memory = old.here.get();
    const std::uint64_t cookie = memory->cookie();
    EXPECT_EQ(Descriptor::from_cookie(cookie), memory);
    old.here.reset();
    EXPECT_EQ(Descriptor::from_cookie(cookie), nullptr) << "closed";
    const LocalPair fresh = local_pair();
    EXPECT_TRUE(fresh.here.get() == memory || fresh.there.get() == memory) << "the memory was not recycled";
    EXPECT_EQ(Descriptor::from_cookie(cookie), nullptr) << "recycled";
  });
}

// Nothing that one life of a descriptor leaves behind may show in the next.
TEST(DescriptorReuse, NothingOfTheFormerLifeIsLeft) {
  run_with(1, [] {
    LocalPair pair = local_pair();
    Descriptor* const memory = pair.here.get();
    EXPECT_TRUE(pair.there->write_all(bytes("short")));
    EXPECT_EQ(read_some(*pair.here), "short");                          // drained
    (void)pair.here->deliver({true, true, true}, pair.here->cookie());  // events, a hang-up
    pair.here->set_write_timeout(1);
    pair.here->set_deadline(Side::kWrite, rt::now_ns() + 1'000'000'000);
    pair.here->close();
    pair.here->set_deadline(Side::kRead, 1);  // expired, and after the close
    pair.here.reset();
    pair.there.reset();

    LocalPair fresh = local_pair();
    if (fresh.here.get() != memory) std::swap(fresh.here, fresh.there);
    ASSERT_EQ(fresh.here.get(), memory);
    EXPECT_TRUE(fresh.there->write_all(bytes("x")));
    EXPECT_EQ(read_some(*fresh.here), "x");
    fill(*fresh.here);
    WaitGroup group;
    group.go([&] { EXPECT_TRUE(fresh.here->write_all(bytes("y"))); });
    wait_until_parked(1, WaitReason::kIoWrite);
    while (fresh.there->control("read", [](int fd) {
      char buffer[4096];
      return sys::invoke(SYS_read, fd, buffer, sizeof buffer);
    })) {
    }
    group.wait();
  });
}

// Sockets come and go while their peers keep sending: if an event of one reached its successor, or if an
// event got lost, a reader would get the wrong bytes or wait for ever.
TEST_P(DescriptorTest, ManyShortLivesDoNotDisturbEachOther) {
  run_with(GetParam(), [] {
    WaitGroup group;
    for (int g = 0; g < 8; ++g) {
      group.go([g] {
        for (int i = 0; i < scaled(2'000); ++i) {
          LocalPair pair = local_pair();
          const std::string text = std::to_string(g * 1'000'000 + i);
          WaitGroup reader;
          reader.go([&] { EXPECT_EQ(read_some(*pair.here), text); });
          if (i % 3 == 0) yield();
          EXPECT_TRUE(pair.there->write_all(bytes(text)));
          reader.wait();
          EXPECT_TRUE(pair.there->write_all(bytes("an event for nobody")));
        }
      });
    }
    group.wait();
  });
}

// -- Reading.

#if !defined(TUZA_POLLER_KQUEUE)  // there a short read shows nothing (poller_kqueue.cpp)
TEST_P(DescriptorTest, AShortReadIsNotFollowedByAUselessOne) {
  run_with(GetParam(), [] {
    // Not a local pair: there a read by the peer is an edge, too, which may report data once more
    // (descriptor.h).
    TcpPair pair = tcp_pair();
    CountingBuffer buffer;
    constexpr int kRounds = 200;
    WaitGroup group;
    group.go([&pair] {
      for (int i = 0; i < kRounds; ++i) {
        ASSERT_EQ(read_some(pair.server), "ping");
        ASSERT_TRUE(pair.server.write_all("pong"));
      }
    });
    for (int i = 0; i < kRounds; ++i) {
      ASSERT_TRUE(pair.client.write_all("ping"));
      ASSERT_EQ(detail::ConnParts::read(pair.client, buffer).value_or(0), 4u);
    }
    group.wait();
    // The first read does not know yet that there is no data, and the edge of the connection itself may be
    // reported together with the first answer. From then on each edge is data, and is reported once, however
    // many Ms poll.
    EXPECT_LE(buffer.in_vain, 2);
    EXPECT_EQ(buffer.takes - buffer.in_vain, kRounds);
  });
}
#endif

TEST_P(DescriptorTest, AReadOfWhatIsThereWaitsForNothingAndLosesNothing) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair();
    Descriptor& d = detail::ConnParts::descriptor(pair.client);
    std::array<char, 4> piece{};
    const auto now = [&]() -> std::string {
      const Result<std::size_t> n = d.read_now(std::as_writable_bytes(std::span(piece)));
      if (n) return {piece.data(), *n};
      return n.error().is(std::errc::operation_would_block) ? "nothing" : n.error().message();
    };
    for (int i = 0; i < 50; ++i) {
      EXPECT_EQ(now(), "nothing");
      ASSERT_TRUE(pair.server.write_all("onetwo"));
      EXPECT_EQ(read_some(pair.client, 2), "on") << "the edge is still there for one who waits";
      EXPECT_EQ(now(), "etwo");
      EXPECT_EQ(now(), "nothing");
    }
    pair.server.close();
    EXPECT_EQ(read_some(pair.client), "");
    EXPECT_EQ(now(), "");
    d.set_deadline(Side::kRead, 1);
    EXPECT_NE(now(), "");
  });
}

TEST_P(DescriptorTest, ReadsWhatIsNoSocketAndSocketsBehindIt) {
  run_with(GetParam(), [] {
    std::array<int, 2> ends{};
    ASSERT_EQ(sys::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    Descriptor* const d = Descriptor::open(ends[0], "pipe").value();
    std::array<std::byte, 4> piece;
    EXPECT_EQ(d->read(std::span(piece).first(0)), 0u) << "waits for nothing";
    for (int i = 0; i < 3; ++i) {
      WaitGroup group;
      group.go([&] { EXPECT_EQ(d->read(piece), 1u); });
      wait_until_parked(1, WaitReason::kIoRead);
      EXPECT_EQ(sys::write(ends[1], "x", 1), 1);
      group.wait();
    }
    EXPECT_TRUE(d->read_now(piece).error().is(std::errc::operation_would_block));
    d->dispose();
    TcpPair pair = tcp_pair();  // one of them probably in the same place
    ASSERT_TRUE(pair.server.write_all("x") && pair.client.write_all("y"));
    EXPECT_EQ(read_some(pair.client), "x");
    EXPECT_EQ(read_some(pair.server), "y");
    sys::close(ends[1]);
  });
}

TEST_P(DescriptorTest, IsQuietUntilDataOrTheEndIsReported) {
  run_with(GetParam(), [] {
    TcpPair pair = tcp_pair(), other = tcp_pair();
    WaitGroup group;
    group.go([&] { EXPECT_EQ(read_some(other.client), ""); });  // nobody polls for nobody
    wait_until_parked(1, WaitReason::kIoRead);
    Descriptor& d = detail::ConnParts::descriptor(pair.client);
    std::array<std::byte, 4> piece;
    EXPECT_FALSE(d.is_quiet()) << "nobody has looked";
    for (int i = 0; i < 50; ++i) {
      EXPECT_FALSE(d.read_now(piece));
      EXPECT_TRUE(d.is_quiet());
      ASSERT_TRUE(pair.server.write_all("x"));
      tuza::testing::yield_until([&] { return !d.is_quiet(); });
      EXPECT_EQ(read_some(pair.client), "x");
    }
    EXPECT_FALSE(d.read_now(piece));
    pair.server.close();
    tuza::testing::yield_until([&] { return !d.is_quiet(); });
    other.server.close();
    group.wait();
  });
}

TEST_P(DescriptorTest, ABufferIsTakenOnlyWhenThereIsSomethingToRead) {
  run_with(GetParam(), [] {
    LocalPair pair = local_pair();
    EXPECT_TRUE(pair.there->write_all(bytes("first")));
    EXPECT_EQ(read_some(*pair.here), "first");
    pair.here->set_deadline(Side::kRead, 1);  // consumes nothing, but an edge may still be pending
    pair.here->set_deadline(Side::kRead, Deadline::kNone);
    CountingBuffer buffer;
    WaitGroup group;
    group.go([&] { EXPECT_EQ(pair.here->read(buffer).value_or(0), 6u); });
    wait_until_parked(1, WaitReason::kIoRead);
    EXPECT_EQ(buffer.takes, buffer.in_vain) << "it waits, and holds the buffer";
    EXPECT_TRUE(pair.there->write_all(bytes("second")));
    group.wait();
  });
}

TEST_P(DescriptorTest, TheEndOfTheStreamIsSeenThoughItCameWithTheData) {
  run_with(GetParam(), [] {
    for (int i = 0; i < scaled(1'000); ++i) {
      LocalPair pair = local_pair();
      WaitGroup group;
      group.go([&pair] {
        EXPECT_EQ(read_some(*pair.here), "last words");
        EXPECT_EQ(read_some(*pair.here), "") << "the end";
        EXPECT_EQ(read_some(*pair.here), "") << "and again";
      });
      if (i % 2 == 0) wait_until_parked(1, WaitReason::kIoRead);
      EXPECT_TRUE(pair.there->write_all(bytes("last words")));
      if (i % 3 == 0) yield();
      pair.there.reset();
      group.wait();
    }
  });
}

// A read used to stop there, and the data behind it was read only when more data arrived.
TEST_P(DescriptorTest, AShortReadAtUrgentDataIsNotTheEndOfTheInput) {
  run_with(GetParam(), [] {
    for (int i = 0; i < scaled(100) && !HasFailure(); ++i) {
      TcpPair pair = tcp_pair();
      pair.server.set_read_deadline(Clock::now() + 60s);
      WaitGroup group;
      group.go([&pair] {
        std::string all, got;
        do {
          all += got = read_some(pair.server);
        } while (all.size() < 11 && !got.empty());
        EXPECT_EQ(all, "beforeafter");
      });
      wait_until_parked(1, WaitReason::kIoRead);
      for (const auto& [text, flags] :
           {std::pair{"before", 0}, std::pair{"!", int{MSG_OOB}}, std::pair{"after", 0}}) {
        EXPECT_TRUE(detail::ConnParts::descriptor(pair.client).control("send", [&](int fd) {
          return sys::invoke(SYS_sendto, fd, text, std::strlen(text), flags, nullptr, 0);
        }));
      }
      group.wait();
    }
  });
}

// A read that then failed consumed the edge: the data that the edge announced is still there.
TEST_P(DescriptorTest, AReadThatFailsDoesNotLoseTheEdge) {
  run_with(GetParam(), [] {
    LocalPair pair = local_pair();
    EXPECT_TRUE(pair.there->write_all(bytes("short")));
    EXPECT_EQ(read_some(*pair.here), "short");
    EXPECT_TRUE(pair.there->write_all(bytes("kept")));
    auto* const nowhere = reinterpret_cast<std::byte*>(std::uintptr_t{16});
    const Result<std::size_t> n = pair.here->read(std::span(nowhere, 64));
    ASSERT_FALSE(n);
    EXPECT_TRUE(n.error().is(std::errc::bad_address)) << n.error().message();
    EXPECT_EQ(read_some(*pair.here), "kept");
  });
}

TEST(Descriptor, WhatThePollerDoesNotTakeIsAnErrorAndIsClosed) {
  run_with(1, [] {
    const int fd = static_cast<int>(sys::invoke(SYS_memfd_create, "file", 0));
    ASSERT_GE(fd, 0);
    const Result<Descriptor*> d = Descriptor::open(fd, "open");
    ASSERT_FALSE(d);
    EXPECT_EQ(d.error().message(), "open: Operation not permitted");
    EXPECT_FALSE(is_open(fd));
  });
}

TEST(Descriptor, OutsideARuntimeItIsAnErrorAndIsClosed) {
  const int fd = static_cast<int>(sys::invoke(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK));
  ASSERT_GE(fd, 0);
  const Result<Descriptor*> d = Descriptor::open(fd, "open");
  ASSERT_FALSE(d);
  EXPECT_TRUE(d.error().is(Errc::kNotRunning));
  EXPECT_FALSE(is_open(fd));
}

// -- Pipes.

// The pipe is full, and its reader goes before the poller watches for room. kqueue may refuse to watch such a pipe
// (poller_kqueue.cpp); the next write reports the error all the same.
long write_until_full_then_lose_the_reader(int fd, int& reader) {
  constexpr std::array<char, 4096> kPiece{};
  long n = 1;
  while (n > 0) n = sys::write(fd, kPiece.data(), kPiece.size());
  if (n == -EAGAIN && reader >= 0) sys::close(std::exchange(reader, -1));
  return n;
}

TEST(DescriptorPipe, AWriterWhoseReaderGoesBeforeItWaitsGetsTheErrorOfTheWrite) {
  std::optional<detail::DescriptorOwner> of_an_earlier_run;
  std::array<int, 2> earlier{-1, -1};
  ASSERT_EQ(sys::pipe2(earlier.data(), O_NONBLOCK | O_CLOEXEC), 0);
  run_with(1, [&] {
    std::array<int, 2> ends{-1, -1};
    ASSERT_EQ(sys::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC), 0);
    const detail::DescriptorOwner writer(Descriptor::open(ends[1], "test").value());
    const Result<long> written = writer->retry(
        Side::kWrite, "write", [&](int fd) { return write_until_full_then_lose_the_reader(fd, ends[0]); });
    EXPECT_TRUE(!written && written.error().is(std::errc::broken_pipe));
    of_an_earlier_run.emplace(Descriptor::open(earlier[1], "test", Descriptor::Watch::kBoth).value());
  });
  run_with(1, [&] {
    const Result<long> written = (*of_an_earlier_run)->retry(Side::kWrite, "write", [&](int fd) {
      return write_until_full_then_lose_the_reader(fd, earlier[0]);
    });
    EXPECT_TRUE(!written && written.error().is(std::errc::broken_pipe));
    of_an_earlier_run.reset();
  });
}

// -- Closing.

TEST_P(DescriptorTest, TheNumberIsClosedOnlyAfterTheLastUser) {
  run_with(GetParam(), [] {
    const Numbers numbers = local_numbers();
    detail::DescriptorOwner here(Descriptor::open(numbers.here, "test").value());
    std::atomic<bool> inside{false}, leave{false};
    WaitGroup group;
    group.go([&] {
      const Result<long> r = here->control("use", [&](int fd) -> long {
        inside = true;
        while (!leave) yield();
        EXPECT_EQ(fd, numbers.here);
        return is_open(fd) ? 7 : -EBADF;
      });
      EXPECT_EQ(r.value_or(-1), 7);
    });
    yield_until([&] { return inside.load(); });
    here->close();
    EXPECT_TRUE(is_open(numbers.here));
    EXPECT_TRUE(here->write_all(bytes("x")).error().closed()) << "no new users";
    leave = true;
    group.wait();
    EXPECT_FALSE(is_open(numbers.here));
    EXPECT_FALSE(here->control("use", [](int) -> long { return 0; }));
    sys::invoke(SYS_close, numbers.there);
  });
}

TEST_P(DescriptorTest, ClosingWakesReadersAndWritersAndTheirQueues) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(200); ++round) {
      LocalPair pair = local_pair();
      fill(*pair.here);
      WaitGroup group;
      for (int i = 0; i < 3; ++i) {
        group.go([&pair] { EXPECT_TRUE(read_some(*pair.here).starts_with("<read: use of a closed")); });
        group.go([&pair] { EXPECT_TRUE(pair.here->write_all(bytes("x")).error().closed()); });
      }
      if (round % 2 == 0) {
        wait_until_parked(4, WaitReason::kSemaphore);
        wait_until_parked(1, WaitReason::kIoRead);
        wait_until_parked(1, WaitReason::kIoWrite);
      } else {
        for (int n = 0; n < round % 16; ++n) yield();
      }
      pair.here->close();
      pair.here->close();
      group.wait();
    }
  });
}

}  // namespace
}  // namespace tuza::net::testing
