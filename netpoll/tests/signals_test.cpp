// Signals that a goroutine waits for.
#include <tuza/netpoll/signals.h>

#include <tuza/netpoll/detail/end_of_run.h>
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/sched/tests/children.h>

#include <signal.h>
#include <sys/wait.h>
#include <tuza/sched/go.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

namespace tuza::net::testing {
namespace {

class SignalsTest : public WithProcs {};
TUZA_WITH_PROCS(SignalsTest);

std::atomic<int> g_handled{0};

TEST_P(SignalsTest, ReachTheGoroutineThatWaits) {
  run_with(GetParam(), [] {
    SignalSet signals = SignalSet::open({SIGUSR1, SIGUSR2}).value();
    WaitGroup group;
    std::vector<int> got;
    group.go([&] {
      for (int i = 0; i < 2; ++i) got.push_back(signals.wait().value_or(-1));
    });
    wait_until_parked(1, WaitReason::kIoRead);
    kill(getpid(), SIGUSR1);
    yield_until([&] { return goroutines_waiting(WaitReason::kIoRead) == 1; });
    kill(getpid(), SIGUSR2);
    group.wait();
    std::sort(got.begin(), got.end());
    EXPECT_EQ(got, (std::vector<int>{SIGUSR1, SIGUSR2}));
  });
}

TEST_P(SignalsTest, ThoseThatFollowAtOnceCanBeMerged) {
  run_with(GetParam(), [] {
    SignalSet signals = SignalSet::open({SIGUSR1, SIGUSR2}).value();
    for (int i = 0; i < 3; ++i) kill(getpid(), SIGUSR1);
    EXPECT_EQ(signals.wait().value(), SIGUSR1);
    kill(getpid(), SIGUSR2);
    signals.merge(SIGUSR1);
    EXPECT_EQ(signals.wait().value(), SIGUSR2);
    const auto [ctx, cancel] = with_timeout(Context(), 10ms);
    EXPECT_FALSE(signals.wait(ctx));
    kill(getpid(), SIGUSR1);
    EXPECT_EQ(signals.wait().value(), SIGUSR1);
  });
}

TEST_P(SignalsTest, WaitForOneThatWaitsForThem) {
  run_with(GetParam(), [] {
    SignalSet signals = SignalSet::open({SIGUSR1}).value();
    for (int i = 0; i < 10; ++i) raise(SIGUSR1);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(signals.wait().value_or(-1), SIGUSR1);
  });
}

TEST_P(SignalsTest, CloseEndsTheWait) {
  run_with(GetParam(), [] {
    SignalSet signals = SignalSet::open({SIGUSR1}).value();
    WaitGroup group;
    group.go([&] { EXPECT_TRUE(signals.wait().error().closed()); });
    wait_until_parked(1, WaitReason::kIoRead);
    signals.close();
    group.wait();
  });
}

TEST_P(SignalsTest, AfterwardsTheyDoWhatTheyDidBefore) {
  struct sigaction mine{}, before{};
  mine.sa_handler = [](int) { ++g_handled; };
  sigaction(SIGUSR1, &mine, &before);
  g_handled = 0;
  run_with(GetParam(), [] {
    {
      SignalSet signals = SignalSet::open({SIGUSR1}).value();
      raise(SIGUSR1);
      EXPECT_EQ(signals.wait().value_or(-1), SIGUSR1);
      EXPECT_EQ(g_handled, 0);
    }
    raise(SIGUSR1);
    EXPECT_EQ(g_handled, 1);
    EXPECT_TRUE(SignalSet::open({SIGUSR1})) << "the next one may be opened";
  });
  sigaction(SIGUSR1, &before, nullptr);
}

// close() may come long before the destruction of the set, if the set is static. (In a suite of its own:
// ThreadSanitizer ends children that start threads if their parent had some.)
class ClosedSignalsTest : public WithProcs {};
TUZA_WITH_PROCS(ClosedSignalsTest);

TEST_P(ClosedSignalsTest, AfterCloseTheyDoWhatTheyDidBefore) {
  const auto ended = tuza::testing::in_fork([procs = GetParam()] {
    std::optional<SignalSet> signals;
    run(RunOptions{.max_procs = procs}, [&signals] {
      signals.emplace(SignalSet::open({SIGUSR1}).value());
      signals->close();
      EXPECT_TRUE(SignalSet::open({SIGUSR2})) << "another one may be opened";
    });
    if (::testing::Test::HasFailure()) ::_exit(9);
    ::raise(SIGUSR1);
  });
  EXPECT_TRUE(ended.by_signal(SIGUSR1)) << ended.status << ended.said;
}

TEST_P(SignalsTest, WhatOneSetHasNotReturnedIsLostForTheNext) {
  run_with(GetParam(), [] {
    {
      const SignalSet signals = SignalSet::open({SIGUSR1}).value();
      raise(SIGUSR1);
      raise(SIGUSR1);
    }
    SignalSet signals = SignalSet::open({SIGUSR2}).value();
    raise(SIGUSR2);
    EXPECT_EQ(signals.wait().value_or(-1), SIGUSR2);
    const auto [ctx, cancel] = with_timeout(Context::background(), 1ms);
    EXPECT_TRUE(signals.wait(ctx).error().timeout());
  });
}

// The program may do so while the set is open.
TEST_P(SignalsTest, AHandlerThatHasReplacedTheirsStays) {
  run_with(GetParam(), [] {
    SignalSet signals = SignalSet::open({SIGUSR1}).value();
    struct sigaction mine{}, now{};
    mine.sa_handler = [](int) { ++g_handled; };
    sigaction(SIGUSR1, &mine, nullptr);
    signals.close();
    sigaction(SIGUSR1, nullptr, &now);
    EXPECT_EQ(now.sa_handler, mine.sa_handler);
    ::signal(SIGUSR1, SIG_DFL);
  });
}

// More than a pipe holds, and than the handler can count there.
TEST_P(SignalsTest, AFloodOfOneDoesNotSwallowAnother) {
  run_with(GetParam(), [] {
    SignalSet signals = SignalSet::open({SIGUSR1, SIGUSR2}).value();
    const int flood = rt::kTsan ? 3000 : 70'000;
    for (int i = 0; i < flood; ++i) raise(SIGUSR1);
    raise(SIGUSR2);
    const int first = signals.wait().value_or(-1), second = signals.wait().value_or(-1);
    EXPECT_NE(first, second) << "they come by turns";
    for (int i = 0; i < flood - 1; ++i) ASSERT_EQ(signals.wait().value_or(-1), SIGUSR1) << "none is lost";
    const auto [ctx, cancel] = with_timeout(Context::background(), 1ms);
    EXPECT_TRUE(signals.wait(ctx).error().timeout());
  });
}

TEST_P(SignalsTest, EveryWaiterIsWokenAlsoIfTheirPipeIsFull) {
  run_with(GetParam(), [] {
    SignalSet signals = SignalSet::open({SIGUSR1}).value();
    const int flood = rt::kTsan ? 3000 : 70'000;
    for (int i = 0; i < flood; ++i) raise(SIGUSR1);
    std::atomic<int> got{0};
    WaitGroup group;
    for (int waiter = 0; waiter < 4; ++waiter) {
      group.go([&] {
        while (got.fetch_add(1) < flood) EXPECT_EQ(signals.wait().value_or(-1), SIGUSR1);
      });
    }
    group.wait();
  });
}

// A whole process group is signalled by Ctrl-C and by service managers.
TEST_P(SignalsTest, OfAChildBeforeItsExecDoNotReachTheParent) {
  run_with(GetParam(), [] {
    SignalSet signals = SignalSet::open({SIGUSR1, SIGUSR2}).value();
    std::array<int, 2> ready{};
    ASSERT_EQ(::pipe(ready.data()), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      (void)!::write(ready[1], "r", 1);
      ::alarm(300);
      for (;;) ::pause();
    }
    char byte;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    ::kill(child, SIGUSR1);
    if (rt::kTsan) ::kill(child, SIGKILL);  // TSan keeps the signal from a child of several threads
    int status = 0;
    while (::waitpid(child, &status, 0) != child) {
    }
    EXPECT_TRUE(WIFSIGNALED(status)) << status;
    if (!rt::kTsan) {
      EXPECT_EQ(WTERMSIG(status), SIGUSR1) << "it does what it did before the set";
    }
    ::kill(::getpid(), SIGUSR2);
    EXPECT_EQ(signals.wait().value_or(-1), SIGUSR2) << "not the child's";
    ::close(ready[0]);
    ::close(ready[1]);
  });
}

TEST_P(SignalsTest, OfAVforkedChildDoNotReachTheParent) {
  run_with(GetParam(), [] {
    SignalSet signals = SignalSet::open({SIGUSR1, SIGUSR2}).value();
    const pid_t child = ::vfork();
    if (child == 0) {
      ::kill(::getpid(), SIGUSR1);
      ::_exit(3);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) != child) {
    }
    if (!rt::kTsan) {  // which makes a fork of it, whose child ends before it gets the signal
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
    }
    ::kill(::getpid(), SIGUSR2);
    EXPECT_EQ(signals.wait().value_or(-1), SIGUSR2);
  });
}

// A mask that the program has set, or has inherited.
TEST_P(ClosedSignalsTest, TheyArriveAlsoIfTheyAreBlocked) {
  const auto ended = tuza::testing::in_fork([procs = GetParam()] {
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
    run(RunOptions{.max_procs = procs}, [] {
      {
        SignalSet signals = SignalSet::open({SIGUSR1, SIGUSR2}).value();
        for (const int number : {SIGUSR1, SIGUSR2, SIGUSR1}) {
          kill(getpid(), number);
          EXPECT_EQ(signals.wait().value_or(-1), number);
        }
      }
      kill(getpid(), SIGUSR1);  // blocked as before: it does not end the process
      sigset_t pending;
      sigpending(&pending);
      EXPECT_EQ(sigismember(&pending, SIGUSR1), 1);
      SignalSet signals = SignalSet::open({SIGUSR1}).value();
      EXPECT_EQ(signals.wait().value_or(-1), SIGUSR1) << "it was pending";
    });
    if (::testing::Test::HasFailure()) ::_exit(9);
    ::_exit(0);
  });
  EXPECT_TRUE(ended.with_code(0)) << ended.status << ended.said;
}

// After the run Ctrl-C would do nothing, and the next run could not open a set.
TEST_P(ClosedSignalsTest, TheEndOfTheRunClosesASetOfAGoroutineLeftBehind) {
  const auto ended = tuza::testing::in_fork([procs = GetParam()] {
    for (const char* where : {"stack", "closure", "heap"}) {
      run(RunOptions{.max_procs = procs}, [where = std::string_view(where)] {
        if (where == "closure") {
          go([signals = SignalSet::open({SIGUSR1}).value()]() mutable { (void)signals.wait(); });
        } else if (where == "heap") {
          go([] { (void)std::make_unique<SignalSet>(SignalSet::open({SIGUSR1}).value())->wait(); });
        } else {
          go([] {
            SignalSet signals = SignalSet::open({SIGUSR1}).value();
            (void)signals.wait();
          });
        }
        wait_until_parked(1, WaitReason::kIoRead);
      });
    }
    run(RunOptions{.max_procs = procs}, [] { EXPECT_TRUE(SignalSet::open({SIGUSR1})); });
    if (::testing::Test::HasFailure()) ::_exit(9);
    ::raise(SIGUSR1);
  });
  EXPECT_TRUE(ended.by_signal(SIGUSR1)) << ended.status << ended.said;
}

TEST_P(ClosedSignalsTest, TheEndOfTheRunClosesAStaticSet) {
  const auto ended = tuza::testing::in_fork([procs = GetParam()] {
    static std::optional<SignalSet> signals;
    run(RunOptions{.max_procs = procs}, [] { signals.emplace(SignalSet::open({SIGUSR1}).value()); });
    run(RunOptions{.max_procs = procs}, [] {
      EXPECT_TRUE(signals->wait().error().is(Errc::kClosed));
      EXPECT_TRUE(SignalSet::open({SIGUSR1}));
    });
    signals.reset();
    if (::testing::Test::HasFailure()) ::_exit(9);
    ::raise(SIGUSR1);
  });
  EXPECT_TRUE(ended.by_signal(SIGUSR1)) << ended.status << ended.said;
}

// For programs whose exit status is their own, after the last run.
TEST_P(ClosedSignalsTest, SignalsMayBeSwallowedAfterTheRunUntilTheNextSet) {
  const auto ended = tuza::testing::in_fork([procs = GetParam()] {
    run(RunOptions{.max_procs = procs}, [] {
      auto* const signals = new SignalSet(SignalSet::open({SIGUSR1}).value());
      swallow_after_the_run(*signals);
    });
    ::raise(SIGUSR1);
    run(RunOptions{.max_procs = procs}, [] {
      SignalSet signals = SignalSet::open({SIGUSR1}).value();
      ::raise(SIGUSR1);
      EXPECT_EQ(signals.wait().value(), SIGUSR1);
    });
    if (::testing::Test::HasFailure()) ::_exit(9);
    ::raise(SIGUSR1);
  });
  EXPECT_TRUE(ended.by_signal(SIGUSR1)) << ended.status << ended.said;
}

TEST(Signals, OneSetAtATime) {
  run_with(1, [] {
    const SignalSet first = SignalSet::open({SIGUSR1}).value();
    EXPECT_TRUE(SignalSet::open({SIGUSR2}).error().is(std::errc::device_or_resource_busy));
  });
  run_with(1, [] { EXPECT_TRUE(SignalSet::open({SIGUSR1})); });
}

}  // namespace
}  // namespace tuza::net::testing
