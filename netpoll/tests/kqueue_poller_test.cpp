// What the poller makes of a kqueue that refuses, of calls that come in between, and of the end of its own side.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/event.h>
#include <sys/socket.h>
#include <tuza/netpoll/poll/poller.h>
#include <tuza/netpoll/tests/kqueue/kqueue_faults.h>
#include <tuza/netpoll/tests/kqueue/loopback.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <span>
#include <thread>

namespace tuza::net::testing {
namespace {

TEST(KqueuePollerTest, ErrorsOfTheSystemAreThoseOfTheCall) {
  for (const int error : {ENOMEM, EMFILE, ENFILE}) {
    long of_poller = 0;
    const kqueue_faults::Refuse refuse("kqueue", error);
    const Poller poller(of_poller);
    EXPECT_EQ(of_poller, -error);
  }
  for (const int error : {EACCES, ENOMEM, EBADF}) {
    long of_poller = 0;
    const kqueue_faults::Refuse refuse("wait", error);
    const Poller poller(of_poller);
    EXPECT_EQ(of_poller, -error);
  }
}

TEST(KqueuePollerTest, ARefusedRegistrationIsAnErrorAndLeavesNothing) {
  long error = -1;
  Poller poller(error);
  ASSERT_EQ(error, 0);
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  for (const int refusal : {ENOMEM, EACCES, EINVAL}) {
    const kqueue_faults::Refuse refuse("change", refusal);
    EXPECT_EQ(poller.add(ends[0], 1), -refusal);
    EXPECT_EQ(poller.add_reader(ends[0], 1), -refusal);
    EXPECT_EQ(poller.watch_writes(ends[0], 1), -refusal);
    poller.remove(ends[0]);
  }
  {
    const kqueue_faults::Refuse only_the_second("change", ENOMEM, 2);
    EXPECT_EQ(poller.add(ends[0], 1), -ENOMEM);
  }
  {
    const kqueue_faults::Refuse after_the_change("change", EINTR);
    EXPECT_EQ(poller.add(ends[0], 1), 0);
  }
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  std::array<PollEvent, 4> events{};
  EXPECT_EQ(poller.wait(0, events), 0u) << "nothing was registered";
  EXPECT_EQ(poller.add_reader(ends[0], 1), 0);
  EXPECT_EQ(poller.wait(0, events), 1u);
  for (const int fd : ends) ::close(fd);
}

// The writing end of a pipe from which nobody reads.
struct PipeWithoutReaders {
  PipeWithoutReaders() {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(::pipe2(ends.data(), O_NONBLOCK), 0);
    ::close(ends[0]);
    writer = ends[1];
  }
  ~PipeWithoutReaders() { ::close(writer); }
  PipeWithoutReaders(const PipeWithoutReaders&) = delete;
  PipeWithoutReaders& operator=(const PipeWithoutReaders&) = delete;

  int writer = -1;
};

// What this kqueue refuses, and others report.
TEST(KqueuePollerTest, RefusedPipesAreReportedOnceAndAsManyAsThereIsRoomFor) {
  const std::array<PipeWithoutReaders, 3> pipes;
  struct kevent write{};
  write.ident = static_cast<std::uintptr_t>(pipes[0].writer);
  write.filter = EVFILT_WRITE;
  write.flags = EV_ADD;
  const int kq = ::kqueue();
  EXPECT_EQ(::kevent(kq, &write, 1, nullptr, 0, nullptr), -1) << "not refused: this test tests nothing";
  ::close(kq);

  long error = -1;
  Poller poller(error);
  for (std::uint64_t i = 0; i < pipes.size(); ++i) ASSERT_EQ(poller.add(pipes[i].writer, i), 0);
  std::array<PollEvent, 2> events{};
  std::uint64_t cookies = 0;
  for (const std::size_t expected : {2u, 1u}) {
    ASSERT_EQ(poller.wait(0, events), expected);
    for (const PollEvent& e : std::span(events).first(expected)) {
      EXPECT_TRUE(e.readable && e.writable && e.hung_up);
      cookies |= std::uint64_t{1} << e.cookie;
    }
  }
  EXPECT_EQ(cookies, 7u);
  EXPECT_EQ(poller.wait(0, events), 0u);
  EXPECT_EQ(poller.add(pipes[0].writer, 1), 0);  // never taken: deleted with the poller
}

// NetBSD. Of a number that is not open, the first of the two filters says so.
TEST(KqueuePollerTest, ABadNumberOfTheSecondFilterIsAPipeWithoutReaders) {
  const PipeWithoutReaders pipe;
  long error = -1;
  Poller poller(error);
  {
    const kqueue_faults::Refuse the_write_filter("change", EBADF, 2);
    ASSERT_EQ(poller.add(pipe.writer, 5), 0);
  }
  std::array<PollEvent, 4> events{};
  EXPECT_EQ(poller.wait(0, events), 1u);
  EXPECT_EQ(events[0].cookie, 5u);
  const kqueue_faults::Refuse the_read_filter("change", EBADF, 1);
  EXPECT_EQ(poller.add(pipe.writer, 5), -EBADF);
}

// With the wake-up alone: the kernel knows of no event.
TEST(KqueuePollerTest, AThreadThatWaitsGetsWhatTheKernelDoesNotReport) {
  const PipeWithoutReaders pipe;
  long error = -1;
  Poller poller(error);
  std::atomic<std::uint64_t> seen{0};
  constexpr std::uint64_t kRounds = 100;
  std::thread waiter([&] {
    std::array<PollEvent, 4> events{};
    while (seen < kRounds) {
      if (poller.wait(-1, events) > 0) seen = events[0].cookie;
    }
  });
  for (std::uint64_t i = 1; i <= kRounds; ++i) {
    EXPECT_EQ(poller.add(pipe.writer, i), 0);
    while (seen < i) std::this_thread::yield();
  }
  waiter.join();
}

TEST(KqueuePollerTest, AWaitThatIsRefusedLaterCostsEventsOnly) {
  long error = -1;
  Poller poller(error);
  std::array<PollEvent, 4> events{};
  for (const int refusal : {EINTR, ETIMEDOUT, EACCES}) {
    const kqueue_faults::Refuse refuse("wait", refusal);
    EXPECT_EQ(poller.wait(1'000'000, events), 0u);
    EXPECT_EQ(poller.wait(0, events), 0u);
  }
  poller.wake();
  EXPECT_EQ(poller.wait(-1, events), 0u);
}

TEST(KqueuePollerTest, ALostWakeIsTriedAgain) {
  long error = -1;
  Poller poller(error);
  {
    const kqueue_faults::Refuse refuse("change", ENOMEM);
    poller.wake();
  }
  poller.wake();
  std::array<PollEvent, 4> events{};
  EXPECT_EQ(poller.wait(-1, events), 0u);
}

TEST(KqueuePollerTest, TheEndOfThisSideIsNotThatOfThePeer) {
  Loopback ends;
  ASSERT_GE(ends.server, 0);
  long error = -1;
  Poller poller(error);
  ASSERT_EQ(poller.add(ends.client, 1), 0);
  std::array<PollEvent, 4> events{};
  EXPECT_EQ(poller.wait(0, events), 1u) << "there is room";
  ::shutdown(ends.client, SHUT_WR);
  EXPECT_EQ(poller.wait(0, events), 1u);
  EXPECT_FALSE(events[0].hung_up);
  ends.close_server();
  const std::size_t n = poller.wait(-1, events);
  EXPECT_TRUE(std::ranges::any_of(std::span(events).first(n), &PollEvent::hung_up));
}

// Between the event and the change that ends it: the wake-up belongs to the wait that returns, and the next one works.
TEST(KqueuePollerTest, AWakeWhileAnotherIsConsumedIsNotTheLast) {
  long error = -1;
  Poller poller(error);
  std::array<PollEvent, 4> events{};
  poller.wake();
  {
    const kqueue_faults::BeforeChange in_between([&poller] { poller.wake(); });
    EXPECT_EQ(poller.wait(-1, events), 0u);
  }
  poller.wake();
  EXPECT_EQ(poller.wait(-1, events), 0u);
}

}  // namespace
}  // namespace tuza::net::testing
