// Waits for descriptors that belong to other libraries.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/netpoll/wait_fd.h>
#include <tuza/sched/arch/syscall.h>
#include <tuza/sched/goroutine_dump.h>
#include <unistd.h>

#include <array>

namespace tuza::net {
namespace {

using namespace testing;

class WaitFdTest : public WithProcs {};
TUZA_WITH_PROCS(WaitFdTest);

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC), 0); }
  ~Pipe() {
    ::close(ends[0]);
    if (ends[1] >= 0) ::close(ends[1]);
  }
  std::array<int, 2> ends{};
};

// The numbers that refer to the same pipe: the runtime opens others meanwhile. Not through libc, because ThreadSanitizer would
// report a race with each thread that closes one of them.
std::size_t numbers_of(int pipe_end) {
  struct stat wanted{}, found{};
  EXPECT_EQ(::fstat(pipe_end, &wanted), 0);
  std::size_t n = 0;
  for (int fd = 0; fd < 1000; ++fd)
    n += sys::invoke(SYS_fstat, fd, &found) == 0 && found.st_ino == wanted.st_ino ? 1 : 0;
  return n;
}

TEST_P(WaitFdTest, ReturnsWhenThereIsDataAndLeavesTheDescriptorAlone) {
  run_with(GetParam(), [] {
    Pipe pipe;
    for (int i = 0; i < 50; ++i) {
      WaitGroup group;
      group.go([&] { EXPECT_TRUE(wait_readable(pipe.ends[0])); });
      wait_until_parked(1, WaitReason::kIoRead);
      EXPECT_EQ(numbers_of(pipe.ends[0]), 3u) << "both ends, and that of the wait";
      ASSERT_EQ(::write(pipe.ends[1], "x", 1), 1);
      group.wait();
      EXPECT_EQ(numbers_of(pipe.ends[0]), 2u);
      EXPECT_TRUE(wait_readable(pipe.ends[0])) << "it need not wait";
      char c = 0;
      EXPECT_EQ(::read(pipe.ends[0], &c, 1), 1);
    }
    EXPECT_EQ(::fcntl(pipe.ends[0], F_GETFL) & O_NONBLOCK, O_NONBLOCK);
  });
}

TEST_P(WaitFdTest, TheEndOfTheStreamIsReadable) {
  run_with(GetParam(), [] {
    Pipe pipe;
    WaitGroup group;
    group.go([&] { EXPECT_TRUE(wait_readable(pipe.ends[0])); });
    wait_until_parked(1, WaitReason::kIoRead);
    ::close(std::exchange(pipe.ends[1], -1));
    group.wait();
  });
}

// Without a descriptor that stands for both directions, a thread waits.
void wait_until_one_waits_for_both() {
  yield_until([] {
    const std::string text = dump_goroutines({.stacks = false});
    return text.find("[IO wait (read)") != std::string::npos || text.find("[syscall") != std::string::npos;
  });
}

TEST_P(WaitFdTest, EitherDirectionEndsAWaitForBoth) {
  run_with(GetParam(), [] {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    const Context none = Context::background();
    EXPECT_TRUE(wait_readable_or_writable(none, ends[0])) << "an empty socket has room";
    std::string much(1 << 20, 'x');
    while (::write(ends[0], much.data(), much.size()) > 0) {
    }
    WaitGroup group;
    const auto wait = [&] { EXPECT_TRUE(wait_readable_or_writable(none, ends[0])); };
    group.go(wait);
    wait_until_one_waits_for_both();
    ASSERT_EQ(::write(ends[1], "x", 1), 1);
    group.wait();
    ASSERT_EQ(::read(ends[0], much.data(), much.size()), 1);
    group.go(wait);
    wait_until_one_waits_for_both();
    while (::read(ends[1], much.data(), much.size()) > 0) {
    }
    group.wait();
    EXPECT_EQ(numbers_of(ends[0]), 1u);
    const auto [ctx, cancel] = with_cancel(none);
    while (::write(ends[0], much.data(), much.size()) > 0) {
    }
    group.go([&] { EXPECT_FALSE(wait_readable_or_writable(ctx, ends[0])); });
    wait_until_one_waits_for_both();
    cancel();
    group.wait();
    for (const int end : ends) ::close(end);
    const Result<void> invalid = wait_readable_or_writable(none, -1);
    ASSERT_FALSE(invalid);
    EXPECT_TRUE(invalid.error().is(std::errc::bad_file_descriptor));
  });
}

TEST_P(WaitFdTest, AWriterWaitsForRoom) {
  run_with(GetParam(), [] {
    Pipe pipe;
    EXPECT_TRUE(wait_writable(pipe.ends[1])) << "an empty pipe has room";
    const std::string much(1 << 20, 'x');
    ASSERT_GT(::write(pipe.ends[1], much.data(), much.size()), 0);
    WaitGroup group;
    group.go([&] { EXPECT_TRUE(wait_writable(pipe.ends[1])); });
    wait_until_parked(1, WaitReason::kIoWrite);
    std::string into(much.size(), ' ');
    ASSERT_GT(::read(pipe.ends[0], into.data(), into.size()), 0);
    group.wait();
  });
}

TEST_P(WaitFdTest, SeveralGoroutinesWaitForOneDescriptor) {
  run_with(GetParam(), [] {
    Pipe pipe;
    WaitGroup group;
    for (int i = 0; i < 10; ++i) group.go([&] { EXPECT_TRUE(wait_readable(pipe.ends[0])); });
    wait_until_parked(10, WaitReason::kIoRead);
    ASSERT_EQ(::write(pipe.ends[1], "x", 1), 1);
    group.wait();
  });
}

TEST_P(WaitFdTest, EndsWithItsContext) {
  run_with(GetParam(), [] {
    Pipe pipe;
    auto [ctx, cancel] = with_cancel(Context::background());
    WaitGroup group;
    group.go([&, ctx] { EXPECT_TRUE(wait_readable(ctx, pipe.ends[0]).error().cancelled()); });
    wait_until_parked(1, WaitReason::kIoRead);
    cancel();
    group.wait();
    ASSERT_EQ(::write(pipe.ends[1], "x", 1), 1);
    EXPECT_TRUE(wait_readable(ctx, pipe.ends[0]).error().cancelled()) << "it has ended before";
    EXPECT_TRUE(wait_readable(pipe.ends[0]));
  });
}

TEST_P(WaitFdTest, WhatIsNoDescriptorIsAnError) {
  run_with(GetParam(), [] {
    EXPECT_TRUE(wait_readable(-1).error().is(std::errc::bad_file_descriptor));
    EXPECT_TRUE(wait_writable(987'654).error().is(std::errc::bad_file_descriptor));
  });
}

TEST_P(WaitFdTest, AFileIsAlwaysReady) {
  run_with(GetParam(), [] {
    const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    EXPECT_TRUE(wait_readable(file));
    ::close(file);
  });
}

}  // namespace
}  // namespace tuza::net
