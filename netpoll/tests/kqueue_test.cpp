// The kqueue of the tests (kqueue/kqueue.cpp): what the poller's back end relies on, as the manual pages of FreeBSD and
// macOS state it. On such a system these tests run against the kernel: they need nothing else of Tuza.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/event.h>
#include <sys/socket.h>
#include <tuza/netpoll/tests/kqueue/loopback.h>
#include <tuza/sched/arch/last_error.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

namespace tuza::net::testing {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

struct kevent change(int ident, int filter, int flags, unsigned fflags = 0, std::uintptr_t udata = 0) {
  struct kevent event{};
  event.ident = static_cast<std::uintptr_t>(ident);
  event.filter = static_cast<short>(filter);
  event.flags = static_cast<unsigned short>(flags);
  event.fflags = fflags;
  event.udata = reinterpret_cast<void*>(udata);
  return event;
}

class KqueueTest : public ::testing::Test {
 protected:
  KqueueTest() {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()), 0);
    for (const int end : ends_)
      EXPECT_EQ(::fcntl(end, F_SETFL, O_NONBLOCK), 0);  // macOS has no SOCK_NONBLOCK
    here_ = ends_[0];
  }
  ~KqueueTest() override {
    close_there();
    ::close(here_);
    ::close(kq_);
  }

  void close_there() {
    if (ends_[1] >= 0) ::close(std::exchange(ends_[1], -1));
  }
  void send() { ASSERT_EQ(::write(ends_[1], "x", 1), 1); }
  void receive() {
    char byte = 0;
    ASSERT_EQ(::read(here_, &byte, 1), 1);
  }
  // 0 or an errno.
  int apply(const struct kevent& event) {
    return ::kevent(kq_, &event, 1, nullptr, 0, nullptr) == 0 ? 0 : last_error();
  }
  std::vector<struct kevent> look(std::size_t room = 8, Clock::duration wait = 0ms) {
    std::vector<struct kevent> events(room);
    const struct timespec time{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(wait).count()};
    const int n = ::kevent(kq_, nullptr, 0, events.data(), static_cast<int>(room), &time);
    EXPECT_GE(n, 0);
    events.resize(static_cast<std::size_t>(std::max(n, 0)));
    return events;
  }

  const int kq_ = ::kqueue();
  std::array<int, 2> ends_{-1, -1};
  int here_ = -1;
};

// "After the event is retrieved by the user, its state is reset."
TEST_F(KqueueTest, AClearedEventIsReportedAgainOnlyAfterAnotherTransition) {
  ASSERT_EQ(apply(change(here_, EVFILT_READ, EV_ADD | EV_CLEAR, 0, 7)), 0);
  EXPECT_TRUE(look().empty());
  send();
  const auto events = look();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].filter, EVFILT_READ);
  EXPECT_EQ(events[0].ident, static_cast<std::uintptr_t>(here_));
  EXPECT_EQ(events[0].udata, reinterpret_cast<void*>(7));
  EXPECT_EQ(events[0].data, 1);
  EXPECT_TRUE(look().empty()) << "the byte has not been read, but it has been reported";
  send();
  EXPECT_EQ(look().size(), 1u);
}

// The state at the moment of retrieval counts: "the filter is also run when the user attempts to retrieve the kevent".
TEST_F(KqueueTest, WhatWasReadBeforeTheRetrievalIsNotReported) {
  ASSERT_EQ(apply(change(here_, EVFILT_READ, EV_ADD | EV_CLEAR)), 0);
  send();
  receive();
  EXPECT_TRUE(look().empty());
}

TEST_F(KqueueTest, WithoutClearAnEventIsReportedUntilItIsOver) {
  ASSERT_EQ(apply(change(here_, EVFILT_READ, EV_ADD)), 0);
  send();
  EXPECT_EQ(look().size(), 1u);
  EXPECT_EQ(look().size(), 1u);
  receive();
  EXPECT_TRUE(look().empty());
}

// The filters are independent: data that arrives says nothing about room.
TEST_F(KqueueTest, EachDirectionIsAnEventOfItsOwn) {
  ASSERT_EQ(apply(change(here_, EVFILT_WRITE, EV_ADD | EV_CLEAR)), 0);
  ASSERT_EQ(look().size(), 1u) << "a registration looks at the present state";
  ASSERT_EQ(apply(change(here_, EVFILT_READ, EV_ADD | EV_CLEAR)), 0);
  send();
  const auto events = look();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].filter, EVFILT_READ);
}

// "Re-adding an existing event will modify the parameters of the original event, and not result in a duplicate entry."
TEST_F(KqueueTest, AddingAgainLooksAgain) {
  ASSERT_EQ(apply(change(here_, EVFILT_READ, EV_ADD | EV_CLEAR, 0, 1)), 0);
  send();
  EXPECT_EQ(look().size(), 1u);
  ASSERT_EQ(apply(change(here_, EVFILT_READ, EV_ADD | EV_CLEAR, 0, 2)), 0);
  const auto events = look();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].udata, reinterpret_cast<void*>(2));
}

// "It is possible for EOF to be returned (indicating the connection is gone) while there is still data pending."
TEST_F(KqueueTest, TheEndOfTheStreamIsAFlagAndMayComeWithData) {
  ASSERT_EQ(apply(change(here_, EVFILT_READ, EV_ADD | EV_CLEAR)), 0);
  ASSERT_EQ(apply(change(here_, EVFILT_WRITE, EV_ADD | EV_CLEAR)), 0);
  send();
  close_there();
  int ends = 0;
  for (const struct kevent& event : look()) {
    EXPECT_NE(event.flags & EV_EOF, 0);
    if (event.filter == EVFILT_READ) {
      EXPECT_EQ(event.data, 1);
    }
    ++ends;
  }
  EXPECT_EQ(ends, 2);
}

// Linux reports room once more when a stream is half closed, as nothing promises it does not.
TEST_F(KqueueTest, AHalfClosedStreamEndsOneDirection) {
  ASSERT_EQ(apply(change(here_, EVFILT_READ, EV_ADD | EV_CLEAR)), 0);
  ASSERT_EQ(apply(change(here_, EVFILT_WRITE, EV_ADD | EV_CLEAR)), 0);
  look();
  ::shutdown(ends_[1], SHUT_WR);
  bool read_ended = false;
  for (const struct kevent& event : look()) {
    const bool ended = (event.flags & EV_EOF) != 0;
    EXPECT_EQ(ended, event.filter == EVFILT_READ);
    read_ended = read_ended || ended;
  }
  EXPECT_TRUE(read_ended);
}

// The write filter of a socket: EV_EOF "when the reader disconnects", and when this process has ended its own side.
TEST_F(KqueueTest, TheEndOfOnesOwnSideIsSaidByTheWriteFilterAlone) {
  const Loopback ends;
  const int client = ends.client;
  ASSERT_GE(ends.server, 0);
  for (const int filter : {EVFILT_READ, EVFILT_WRITE})
    ASSERT_EQ(apply(change(client, filter, EV_ADD | EV_CLEAR)), 0);
  EXPECT_EQ(look().size(), 1u);
  ::shutdown(client, SHUT_WR);
  const auto events = look();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].filter, EVFILT_WRITE);
  EXPECT_NE(events[0].flags & EV_EOF, 0);
  EXPECT_EQ(events[0].fflags, 0u);
}

// "For sockets, pipes and FIFOs, EV_EOF will be set when the reader disconnects." What a registration after that gets, no manual
// says: EPIPE on FreeBSD, OpenBSD and DragonFly, EBADF on NetBSD; macOS reports the end at once.
TEST_F(KqueueTest, APipeWithoutReadersHasEndedOrIsRefused) {
  for (const bool registered_before : {true, false}) {
    std::array<int, 2> pipe{-1, -1};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const struct kevent add = change(pipe[1], EVFILT_WRITE, EV_ADD | EV_CLEAR);
    if (registered_before) {
      ASSERT_EQ(apply(add), 0);
      EXPECT_EQ(look().size(), 1u) << "there is room";
    }
    ::close(pipe[0]);
    const int error = registered_before ? 0 : apply(add);
    const auto events = look();
    if (error == 0) {
      ASSERT_EQ(events.size(), 1u);
      EXPECT_EQ(events[0].filter, EVFILT_WRITE);
      EXPECT_NE(events[0].flags & EV_EOF, 0);
    } else {
      EXPECT_TRUE(error == EPIPE || error == EBADF) << error;
      EXPECT_TRUE(events.empty());
    }
    ::close(pipe[1]);
  }
}

// "Calling close() on a file descriptor will remove any kevents that reference the descriptor."
TEST_F(KqueueTest, ClosingANumberEndsItsRegistrations) {
  ASSERT_EQ(apply(change(here_, EVFILT_READ, EV_ADD | EV_CLEAR)), 0);
  send();
  ::close(std::exchange(here_, -1));
  EXPECT_TRUE(look().empty());
}

// Registrations are those of the number, not of the file.
TEST_F(KqueueTest, AClosedNumberReportsNothingThoughItsFileIsOpen) {
  const int other = ::dup(here_);
  ASSERT_EQ(apply(change(here_, EVFILT_READ, EV_ADD | EV_CLEAR, 0, 1)), 0);
  ASSERT_EQ(apply(change(other, EVFILT_READ, EV_ADD | EV_CLEAR, 0, 2)), 0);
  const int number = std::exchange(here_, other);
  ::close(number);
  for (int i = 0; i < 2; ++i) {
    send();
    const auto events = look();
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].udata, reinterpret_cast<void*>(2));
    // The next number is the closed one, for another file.
    if (i == 0) {
      EXPECT_EQ(::dup(ends_[1]), number);
    }
  }
  EXPECT_EQ(apply(change(number, EVFILT_READ, EV_DELETE)), ENOENT);
  ::close(number);
}

TEST_F(KqueueTest, ErrorsOfChanges) {
  EXPECT_EQ(apply(change(999'999, EVFILT_READ, EV_ADD)), EBADF);
  EXPECT_EQ(apply(change(here_, EVFILT_READ, EV_DELETE)), ENOENT);
  EXPECT_EQ(apply(change(here_, -5, EV_ADD)), EINVAL);
  // "If an error occurs while processing an element of the changelist and there is enough room in the eventlist, then
  // the event will be placed in the eventlist with EV_ERROR set in flags and the system error in data."
  const std::array<struct kevent, 2> changes{change(here_, EVFILT_WRITE, EV_DELETE),
                                             change(here_, EVFILT_READ, EV_ADD | EV_RECEIPT)};
  std::array<struct kevent, 4> events{};
  ASSERT_EQ(::kevent(kq_, changes.data(), 2, events.data(), 4, nullptr), 2);
  EXPECT_EQ(events[0].flags, EV_ERROR);
  EXPECT_EQ(events[0].data, ENOENT);
  EXPECT_EQ(events[1].flags, EV_ERROR);
  EXPECT_EQ(events[1].data, 0) << "a receipt";
}

TEST_F(KqueueTest, WithoutRoomForEventsItDoesNotWait) {
  const struct timespec hour{.tv_sec = 3600, .tv_nsec = 0};
  EXPECT_EQ(::kevent(kq_, nullptr, 0, nullptr, 0, &hour), 0);
}

TEST_F(KqueueTest, AUserEventStaysUntilItIsDisabledAndNeedsATriggerAndEnable) {
  ASSERT_EQ(apply(change(1, EVFILT_USER, EV_ADD, 0, 9)), 0);
  EXPECT_TRUE(look().empty());
  ASSERT_EQ(apply(change(1, EVFILT_USER, EV_ENABLE, NOTE_TRIGGER, 9)), 0);
  for (int i = 0; i < 2; ++i) {
    const auto events = look();
    ASSERT_EQ(events.size(), 1u);
    EXPECT_EQ(events[0].filter, EVFILT_USER);
    EXPECT_EQ(events[0].udata, reinterpret_cast<void*>(9));
  }
  ASSERT_EQ(apply(change(1, EVFILT_USER, EV_DISABLE)), 0);
  EXPECT_TRUE(look().empty());
  ASSERT_EQ(apply(change(1, EVFILT_USER, EV_ENABLE, NOTE_TRIGGER)), 0);
  EXPECT_EQ(look().size(), 1u);
  EXPECT_EQ(apply(change(2, EVFILT_USER, EV_ENABLE, NOTE_TRIGGER)), ENOENT);
}

TEST_F(KqueueTest, AUserEventEndsAWaitOnAnotherThread) {
  ASSERT_EQ(apply(change(1, EVFILT_USER, EV_ADD)), 0);
  std::thread waker([this] { EXPECT_EQ(apply(change(1, EVFILT_USER, EV_ENABLE, NOTE_TRIGGER)), 0); });
  struct kevent event{};
  EXPECT_EQ(::kevent(kq_, nullptr, 0, &event, 1, nullptr), 1);
  waker.join();
}

TEST_F(KqueueTest, AWaitEndsAtItsTimeout) {
  const auto begin = Clock::now();
  EXPECT_TRUE(look(8, 3ms).empty());
  EXPECT_GE(Clock::now() - begin, 3ms);
}

}  // namespace
}  // namespace tuza::net::testing
