// What the poller makes of a kqueue that refuses, of calls that come in between, and of the end of its own side.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <tuza/netpoll/poll/poller.h>
#include <tuza/netpoll/tests/kqueue/kqueue_faults.h>
#include <tuza/netpoll/tests/kqueue/loopback.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>

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
    // macOS, for a pipe whose other end has gone, and EINTR: the change has been made.
    for (const int made : {EPIPE, EINTR}) {
      const kqueue_faults::Refuse refuse("change", made);
      EXPECT_EQ(poller.add(ends[0], 1), 0);
    }
  }
  ASSERT_EQ(::write(ends[1], "x", 1), 1);
  std::array<PollEvent, 4> events{};
  EXPECT_EQ(poller.wait(0, events), 0u) << "nothing was registered";
  EXPECT_EQ(poller.add_reader(ends[0], 1), 0);
  EXPECT_EQ(poller.wait(0, events), 1u);
  for (const int fd : ends) ::close(fd);
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
