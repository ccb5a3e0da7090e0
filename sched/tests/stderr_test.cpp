// Standard error that is no longer read: a pipe into a pager, or a socket to a log collector that hangs. The
// runtime drops its output and does not wait. (With schedtrace the program used to stop, because sysmon
// waited.)
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <tuza/sched/go.h>
#include <tuza/sched/log.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/children.h>
#include <tuza/sched/tests/testing.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using namespace testing;

enum class Kind { kPipe, kSocket };

// The standard error of a child. The object that creates it does not read it.
class Unread {
 public:
  explicit Unread(Kind kind) {
    switch (kind) {
      case Kind::kPipe:
        if (::pipe(ends_.data()) != 0) ::_exit(3);
        break;
      case Kind::kSocket:
        if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()) != 0) ::_exit(3);
        break;
    }
    ::dup2(ends_[1], 2);
  }

  // Fills it until it accepts not one byte more.
  void fill() {
    const int flags = ::fcntl(2, F_GETFL);
    ::fcntl(2, F_SETFL, flags | O_NONBLOCK);
    const std::string some(4096, '.');
    for (std::size_t piece = some.size(); piece > 0; piece /= 2) {
      while (::write(2, some.data(), piece) > 0) {
      }
    }
    ::fcntl(2, F_SETFL, flags);
  }

  // Everything in it except what fill() wrote.
  std::string read() {
    ::fcntl(ends_[0], F_SETFL, O_NONBLOCK);
    std::string all;
    char text[4096];
    for (ssize_t n = 0; (n = ::read(ends_[0], text, sizeof text)) > 0;) {
      all.append(text, static_cast<std::size_t>(n));
    }
    std::erase(all, '.');
    return all;
  }

  // Writes to `to` what is read until the program has ended.
  void hand_on(int to) {
    ::close(ends_[1]);
    ::close(2);
    char text[4096];
    for (ssize_t n = 0; (n = ::read(ends_[0], text, sizeof text)) > 0;) {
      if (::write(to, text, static_cast<std::size_t>(n)) != n) ::_exit(3);
    }
  }

 private:
  std::array<int, 2> ends_{};
};

// Runs a goroutine that keeps the only P until sysmon takes it, and then computes for `afterwards`.
void need_sysmon(std::chrono::milliseconds afterwards = {}) {
  std::atomic<bool> others_ran = false;
  WaitGroup group;
  group.go([&] {
    group.go([&others_ran] { others_ran = true; });
    while (!others_ran) {
    }
    for (const auto end = std::chrono::steady_clock::now() + afterwards;
         std::chrono::steady_clock::now() < end;) {
    }
  });
  group.wait();
}

class UnreadStderrTest : public ::testing::TestWithParam<Kind> {};
std::string name_of_stderr(const ::testing::TestParamInfo<Kind>& kind) {
  constexpr std::array kNames{"Pipe", "Socket"};
  return kNames[static_cast<std::size_t>(kind.param)];
}
INSTANTIATE_TEST_SUITE_P(With, UnreadStderrTest, ::testing::Values(Kind::kPipe, Kind::kSocket),
                         name_of_stderr);

// Full from the start, or filled by the trace itself.
TEST_P(UnreadStderrTest, TheSchedulerIsTracedAndKeepsRunning) {
  for (const bool full : {true, false}) {
    const Ended ended = in_fork([full] {
      Unread to(GetParam());
      if (full) to.fill();
      setenv("TUZA_DEBUG", "schedtrace=1,scheddetail=1", 1);
      run(RunOptions{.max_procs = 1}, [] {
        for (int i = 0; i < 4 * scaled(250); ++i) go([] { sleep_for(1h); });
        for (int i = 0; i < 20; ++i) need_sysmon();
      });
      ::_exit(full || to.read().find("SCHED ") != std::string::npos ? 7 : 8);
    });
    EXPECT_TRUE(ended.with_code(7)) << ended.status;
  }
}

TEST_P(UnreadStderrTest, StallsAreReportedAndTheSchedulerKeepsRunning) {
  for (const bool full : {true, false}) {
    const Ended ended = in_fork([full] {
      Unread to(GetParam());
      if (full) to.fill();
      setenv("TUZA_DEBUG", "stalls=1ms", 1);
      run(RunOptions{.max_procs = 1}, [full, &to] {
        for (int i = 0; i < 20; ++i) need_sysmon(10ms);
        // The same stall is reported where there is room.
        while (!full && to.read().find("tuza: stall: goroutine") == std::string::npos) need_sysmon(10ms);
      });
    });
    EXPECT_TRUE(ended.with_code(7)) << ended.status;
  }
}

TEST_P(UnreadStderrTest, LoggingDoesNotBlock) {
  const Ended ended = in_fork([] {
    Unread to(GetParam());
    run(RunOptions{.max_procs = 2}, [] {
      WaitGroup group;
      for (int i = 0; i < 20; ++i) {
        group.go([] {
          const std::string line(500, 'x');
          for (int k = 0; k < 100; ++k) log_line(LogLevel::kWarning, line);
        });
      }
      std::thread([] { log_line(LogLevel::kError, "from a thread"); }).join();
      group.wait();
    });
    ::_exit(7);
  });
  EXPECT_TRUE(ended.with_code(7)) << ended.status;
}

TEST_P(UnreadStderrTest, LinesAreLostOnlyUntilTheReaderReturns) {
  const Ended ended = in_fork([] {
    Unread to(GetParam());
    to.fill();
    run([&to] {
      log_line(LogLevel::kWarning, "lost");
      log_line(LogLevel::kWarning, "lost as well");
      if (to.read() != "") ::_exit(8);
      log_line(LogLevel::kWarning, "first of the new ones");
      log_line(LogLevel::kWarning, "second");
      const std::string all = to.read();
      if (all.find("first of the new ones") == all.npos || all.find("second") == all.npos) ::_exit(9);
    });
  });
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}

// A name that a peer chose forges no line, and gives no order to a terminal.
TEST(Stderr, ControlCharactersOfALineAreEscaped) {
  const Ended ended = in_fork([] {
    Unread to(Kind::kPipe);
    log_line(LogLevel::kWarning, "a\nb\x1b[31m \xc2\x9b \xc3\xa4 \xc2\xa0 \x7f\xc2");
    ::_exit(to.read() == "a\\x0ab\\x1b[31m \\xc2\\x9b \xc3\xa4 \xc2\xa0 \\x7f\xc2\n" ? 7 : 8);
  });
  EXPECT_TRUE(ended.with_code(7)) << ended.status;
}

// -- A process that ends with a report.

[[gnu::noinline]] int overflow_here(int depth) {
  volatile char frame[200];
  frame[depth % 200] = static_cast<char>(depth);
  return depth == 0 ? 0 : overflow_here(depth + 1) + frame[depth % 200];
}

TEST_P(UnreadStderrTest, AProcessThatEndsWithAReportEnds) {
  const Ended overflows = in_fork([] {
    Unread to(GetParam());
    to.fill();
    run([] { overflow_here(1); });
  });
  EXPECT_TRUE(overflows.by_signal(SIGABRT)) << overflows.status;
  const Ended deadlocks = in_fork([] {
    Unread to(GetParam());
    to.fill();
    run([] {
      for (int i = 0; i < 100; ++i)
        go([] {
          WaitGroup never;
          never.add(1);
          never.wait();
        });
      WaitGroup never;
      never.add(1);
      never.wait();
    });
  });
  EXPECT_TRUE(deadlocks.with_code(2)) << deadlocks.status;
}

// A final report waits for the reader, which is only slow.
TEST(SlowStderr, AReportWaitsForAReaderThatIsSlow) {
  const Ended ended = in_fork([] {
    const int to_test = ::dup(2);
    Unread to(Kind::kPipe);
    to.fill();
    // A process of its own: a thread would end with the program, perhaps before it has read the report.
    if (::fork() == 0) {
      ::usleep(300'000);
      to.hand_on(to_test);
      ::_exit(0);
    }
    ::close(to_test);
    run([] { overflow_here(1); });
  });
  EXPECT_TRUE(ended.by_signal(SIGABRT)) << ended.status;
  EXPECT_TRUE(ended.said_this("stack overflow")) << ended.said;
}

}  // namespace
}  // namespace tuza
