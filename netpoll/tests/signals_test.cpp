// Signals that a goroutine waits for.
#include <tuza/netpoll/signals.h>
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/sched/tests/children.h>

#include <signal.h>
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

TEST(Signals, OneSetAtATime) {
  run_with(1, [] {
    const SignalSet first = SignalSet::open({SIGUSR1}).value();
    EXPECT_TRUE(SignalSet::open({SIGUSR2}).error().is(std::errc::device_or_resource_busy));
  });
  run_with(1, [] { EXPECT_TRUE(SignalSet::open({SIGUSR1})); });
}

}  // namespace
}  // namespace tuza::net::testing
