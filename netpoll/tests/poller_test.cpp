// The contract of poller.h, for every back end: another back end is one more line in Backends, below.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <tuza/netpoll/poll/poller.h>
#include <tuza/netpoll/tests/fake_poller.h>
#include <tuza/sched/arch/syscall.h>
#include <tuza/sched/tests/testing.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#if defined(TUZA_POLLER_KQUEUE)
#include <tuza/netpoll/tests/kqueue/kqueue_faults.h>
#endif

namespace tuza::net::testing {
namespace {

using namespace std::chrono_literals;
using tuza::testing::scaled;

// A back end under test, and streams that it can watch.
struct OfTheSystem {
  using Poller = net::Poller;

  static std::pair<int, int> open_pair() {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(
        sys::invoke(SYS_socketpair, AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    return {ends[0], ends[1]};
  }
  // The reading end first.
  static std::pair<int, int> open_pipe() {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(sys::invoke(SYS_pipe2, ends.data(), O_NONBLOCK | O_CLOEXEC), 0);
    return {ends[0], ends[1]};
  }
  static std::size_t send(int fd, std::size_t n) {
    const std::string data(n, 'x');
    return moved(sys::invoke(SYS_sendto, fd, data.data(), n, MSG_NOSIGNAL, nullptr, 0));
  }
  static std::size_t receive(int fd, std::size_t n) {
    std::string data(n, '\0');
    return moved(sys::invoke(SYS_recvfrom, fd, data.data(), n, 0, nullptr, nullptr));
  }
  static void close(int fd) { sys::invoke(SYS_close, fd); }

 private:
  static std::size_t moved(long result) { return result > 0 ? static_cast<std::size_t>(result) : 0; }
};

struct Fake {
  using Poller = FakePoller;

  static std::pair<int, int> open_pair() { return FakeKernel::instance().open_pair(); }
  static std::pair<int, int> open_pipe() { return open_pair(); }
  static std::size_t send(int fd, std::size_t n) { return FakeKernel::instance().send(fd, n); }
  static std::size_t receive(int fd, std::size_t n) { return FakeKernel::instance().receive(fd, n); }
  static void close(int fd) { FakeKernel::instance().close(fd); }
};

#if defined(TUZA_POLLER_KQUEUE)
// kqueue where the system has no user events: a pipe carries the wake-up.
struct WithoutUserEvents : OfTheSystem {
  struct Poller : net::Poller {
    explicit Poller(long& error) : net::Poller((kqueue_faults::has_user_events(false), error)) {
      kqueue_faults::has_user_events(true);
    }
  };
};
using Backends = ::testing::Types<OfTheSystem, WithoutUserEvents, Fake>;
#else
using Backends = ::testing::Types<OfTheSystem, Fake>;
#endif

// Two ends; `here` is watched.
template <class Backend>
struct Stream {
  Stream() { std::tie(here, there) = Backend::open_pair(); }
  ~Stream() {
    close_here();
    close_there();
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void close_here() { close(here); }
  void close_there() { close(there); }
  void drain_here() const {
    while (Backend::receive(here, 1 << 16) > 0) {
    }
  }
  void drain_there() const {
    while (Backend::receive(there, 1 << 16) > 0) {
    }
  }
  void fill_here() const {
    while (Backend::send(here, 1024) > 0) {
    }
  }

  int here = -1;
  int there = -1;

 private:
  static void close(int& fd) {
    if (fd >= 0) Backend::close(std::exchange(fd, -1));
  }
};

template <class Backend>
class PollerContract : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(error_, 0); }

  // Takes the events that have come, without waiting.
  void look() { collect(0); }
  // Waits until `seen` is true of the events of `cookie` since it was last forgotten.
  template <class Seen>
  PollEvent await(std::uint64_t cookie, Seen seen) {
    while (!seen(events_[cookie])) collect(-1);
    return events_[cookie];
  }
  PollEvent await_readable(std::uint64_t cookie) {
    return await(cookie, [](const PollEvent& e) { return e.readable; });
  }
  PollEvent await_writable(std::uint64_t cookie) {
    return await(cookie, [](const PollEvent& e) { return e.writable; });
  }
  void forget() {
    look();
    events_.clear();
  }
  bool has(std::uint64_t cookie) const { return events_.contains(cookie); }

  long error_ = -1;
  typename Backend::Poller poller_{error_};

 private:
  void collect(std::int64_t timeout_ns) {
    std::array<PollEvent, 16> events;
    std::size_t n = 0;
    do {
      n = poller_.wait(timeout_ns, events);
      for (const PollEvent& e : std::span(events).first(n)) {
        PollEvent& sum = events_[e.cookie];
        sum = {e.cookie, sum.readable || e.readable, sum.writable || e.writable, sum.hung_up || e.hung_up};
        EXPECT_TRUE(!e.hung_up || (e.readable && e.writable)) << "a hang-up must wake both sides";
      }
      timeout_ns = 0;
    } while (n > 0);
  }

  std::map<std::uint64_t, PollEvent> events_;  // the union of the events of each cookie
};
TYPED_TEST_SUITE(PollerContract, Backends);

TYPED_TEST(PollerContract, ReportsWhatADescriptorIsAlreadyWhenItIsAdded) {
  Stream<TypeParam> ready, full;
  ASSERT_EQ(TypeParam::send(ready.there, 3), 3u);
  ASSERT_EQ(this->poller_.add(ready.here, 7), 0);
  this->await(7, [](const PollEvent& e) { return e.readable && e.writable; });
  full.fill_here();
  ASSERT_EQ(this->poller_.add(full.here, 8), 0);
  full.drain_there();
  EXPECT_FALSE(this->await_writable(8).hung_up);
}

TYPED_TEST(PollerContract, ReportsEveryTransitionToReadable) {
  Stream<TypeParam> stream;
  ASSERT_EQ(this->poller_.add(stream.here, 1), 0);
  for (int i = 0; i < 100; ++i) {
    this->forget();
    ASSERT_EQ(TypeParam::send(stream.there, 10), 10u);
    EXPECT_FALSE(this->await_readable(1).hung_up);
    stream.drain_here();
  }
}

// Also when the room changed before anything polled.
TYPED_TEST(PollerContract, RoomIsReportedFromTheMomentAWriterAsks) {
  Stream<TypeParam> stream, roomy;
  ASSERT_EQ(this->poller_.add_reader(stream.here, 1), 0);
  ASSERT_EQ(this->poller_.add_reader(roomy.here, 2), 0);
  ASSERT_EQ(TypeParam::send(stream.there, 10), 10u);
  EXPECT_FALSE(this->await_readable(1).hung_up);
  stream.fill_here();
  ASSERT_EQ(this->poller_.watch_writes(stream.here, 1), 0);
  this->forget();
  stream.drain_there();
  EXPECT_FALSE(this->await_writable(1).hung_up);
  this->forget();
  ASSERT_EQ(this->poller_.watch_writes(roomy.here, 2), 0);
  EXPECT_FALSE(this->await_writable(2).hung_up);
}

// Readable twice between two polls: no back end may treat the second as already reported.
TYPED_TEST(PollerContract, ReportsATransitionThatFollowsAnUnseenOne) {
  Stream<TypeParam> stream;
  ASSERT_EQ(this->poller_.add(stream.here, 1), 0);
  for (int i = 0; i < 100; ++i) {
    this->forget();
    ASSERT_EQ(TypeParam::send(stream.there, 10), 10u);
    if (i % 2 == 0) this->await_readable(1);
    stream.drain_here();
    this->forget();
    ASSERT_EQ(TypeParam::send(stream.there, 10), 10u);
    this->await_readable(1);
    stream.drain_here();
  }
}

TYPED_TEST(PollerContract, ReportsEveryTransitionToWritable) {
  Stream<TypeParam> stream;
  ASSERT_EQ(this->poller_.add(stream.here, 1), 0);
  for (int i = 0; i < 20; ++i) {
    stream.fill_here();
    this->forget();
    stream.drain_there();
    EXPECT_FALSE(this->await_writable(1).hung_up);
  }
}

TYPED_TEST(PollerContract, SaysThatTheStreamHasEndedAndWakesBothSides) {
  Stream<TypeParam> stream, at_once;
  ASSERT_EQ(this->poller_.add(stream.here, 1), 0);
  this->forget();
  stream.close_there();
  this->await(1, [](const PollEvent& e) { return e.readable && e.writable && e.hung_up; });
  at_once.close_there();
  ASSERT_EQ(this->poller_.add(at_once.here, 2), 0);
  this->await(2, [](const PollEvent& e) { return e.readable && e.writable && e.hung_up; });
}

// Some systems refuse to watch it. Its writer gets the error from the write.
TYPED_TEST(PollerContract, APipeWithoutReadersIsRegisteredAndHasEnded) {
  const auto ended = [](const PollEvent& e) { return e.readable && e.writable && e.hung_up; };
  const auto [reader, writer] = TypeParam::open_pipe();
  ASSERT_EQ(this->poller_.add_reader(writer, 1), 0);
  TypeParam::close(reader);
  this->forget();
  ASSERT_EQ(this->poller_.watch_writes(writer, 1), 0);
  this->await(1, ended);
  const auto [reader_before, alone] = TypeParam::open_pipe();
  TypeParam::close(reader_before);
  ASSERT_EQ(this->poller_.add(alone, 2), 0);
  this->await(2, ended);
  for (const int fd : {writer, alone}) TypeParam::close(fd);
}

TYPED_TEST(PollerContract, NothingComesForADescriptorThatWasClosed) {
  for (int i = 0; i < 20; ++i) {
    Stream<TypeParam> stream;
    const int number = stream.here;
    ASSERT_EQ(this->poller_.add(stream.here, 1), 0);
    this->await_writable(1);
    stream.close_here();
    this->forget();  // an event that was under way
    Stream<TypeParam> next;
    EXPECT_EQ(next.here, number) << "the number was not used again: this round tests nothing";
    ASSERT_EQ(this->poller_.add(next.here, 2), 0);
    ASSERT_EQ(TypeParam::send(next.there, 1), 1u);
    this->await_readable(2);
    EXPECT_FALSE(this->has(1));
  }
}

TYPED_TEST(PollerContract, ForgetsNoneOfMoreEventsThanItIsAskedFor) {
  constexpr std::uint64_t kStreams = 300;
  std::vector<std::unique_ptr<Stream<TypeParam>>> streams;
  for (std::uint64_t i = 0; i < kStreams; ++i) {
    streams.push_back(std::make_unique<Stream<TypeParam>>());
    ASSERT_EQ(this->poller_.add(streams.back()->here, i), 0);
    ASSERT_EQ(TypeParam::send(streams.back()->there, 1), 1u);
  }
  this->poller_.wake();  // takes a place among the events in some back ends
  std::set<std::uint64_t> readable;
  std::array<PollEvent, 3> three;
  while (readable.size() < kStreams) {
    const std::size_t n = this->poller_.wait(-1, three);
    ASSERT_LE(n, three.size());
    for (const PollEvent& e : std::span(three).first(n)) {
      if (e.readable) readable.insert(e.cookie);
    }
  }
}

TYPED_TEST(PollerContract, DoesNotWaitLongerThanAskedFor) {
  std::array<PollEvent, 4> events;
  EXPECT_EQ(this->poller_.wait(0, events), 0u);
  for (const std::int64_t ns : {1L, 1'000L, 999'999L, 1'000'000L, 3'000'001L}) {
    EXPECT_EQ(this->poller_.wait(ns, events), 0u);
  }
}

TYPED_TEST(PollerContract, RefusesANumberThatIsNotOpen) { EXPECT_EQ(this->poller_.add(999'999, 1), -EBADF); }

TYPED_TEST(PollerContract, AWakeEndsTheNextBlockingWaitAndIsNoEvent) {
  std::array<PollEvent, 4> events;
  this->poller_.wake();
  this->poller_.wake();
  EXPECT_EQ(this->poller_.wait(0, events), 0u) << "one that does not block leaves it for one that does";
  EXPECT_EQ(this->poller_.wait(-1, events), 0u);
  // The wake-up is used up: this call returns only after its timeout. Otherwise wait() would return at once.
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(this->poller_.wait(5'000'000, events), 0u);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 5ms);
}

TYPED_TEST(PollerContract, AWakeEndsAWaitThatBlocks) {
  for (int i = 0; i < scaled(300); ++i) {
    std::thread waker([this] { this->poller_.wake(); });
    std::array<PollEvent, 4> events;
    EXPECT_EQ(this->poller_.wait(-1, events), 0u);
    waker.join();
  }
}

// The waiter reads the news, and waits if there is none; the waker writes, then wakes. A wake-up that is
// dropped because another one is pending must not leave the waiter asleep with stale news.
TYPED_TEST(PollerContract, WhatWasDoneBeforeAWakeIsSeenAfterTheWait) {
  const int rounds = scaled(40'000);
  std::atomic<int> news{0}, seen{0};
  std::thread waker([&] {
    for (int i = 1; i <= rounds; ++i) {
      news.store(i, std::memory_order_relaxed);
      this->poller_.wake();
      // Every other time the next wake-up comes while this one is being consumed.
      if (i % 2 == 0) {
        while (seen.load(std::memory_order_relaxed) < i) std::this_thread::yield();
      }
    }
  });
  std::array<PollEvent, 4> events;
  for (int last = 0; last < rounds;) {
    (void)this->poller_.wait(-1, events);
    last = news.load(std::memory_order_relaxed);
    seen.store(last, std::memory_order_relaxed);
  }
  waker.join();
}

TYPED_TEST(PollerContract, DescriptorsCanBeAddedWhileAThreadWaits) {
  std::atomic<int> readable{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> waiters;  // one blocks, one only polls
  for (const std::int64_t timeout : {-1, 0}) {
    waiters.emplace_back([&, timeout] {
      std::array<PollEvent, 8> events;
      while (!stop) {
        const std::size_t n = this->poller_.wait(timeout, events);
        for (const PollEvent& e : std::span(events).first(n)) readable += e.readable ? 1 : 0;
      }
    });
  }
  for (int i = 0; i < scaled(300); ++i) {
    Stream<TypeParam> stream;
    readable = 0;
    ASSERT_EQ(this->poller_.add(stream.here, 1), 0);
    ASSERT_EQ(TypeParam::send(stream.there, 1), 1u);
    while (readable == 0) std::this_thread::yield();
  }
  stop = true;
  this->poller_.wake();
  for (std::thread& waiter : waiters) waiter.join();
}

}  // namespace
}  // namespace tuza::net::testing
