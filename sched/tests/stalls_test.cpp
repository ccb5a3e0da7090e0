// What a computing goroutine must not delay, and what must not be used up.
#include <tuza/sched/external.h>
#include <tuza/sched/go.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <thread>

namespace tuza {
namespace {

using namespace testing;

// A P that set_max_procs has made surplus keeps its queue until its goroutine enters the scheduler. The
// remaining P must steal from it, although that P is the only one that may be busy.
TEST(Stalls, WorkQueuedOnASurplusPIsStolen) {
  run_with(2, [] {
    std::atomic<bool> chosen = false;
    std::atomic<int> ran = 0;
    WaitGroup group;
    const auto compete_for_the_second_p = [&] {
      while (!chosen) {
        if (own_p() != 1 || chosen.exchange(true)) {
          for (std::atomic<int> work = 0; work < 100'000; ++work) {  // enough for both Ps
          }
          yield();
          continue;
        }
        set_max_procs(1);
        for (int i = 0; i < 8; ++i) group.go([&ran] { ++ran; });
        while (ran < 8) {
        }
      }
    };
    group.go(compete_for_the_second_p);
    group.go(compete_for_the_second_p);
    group.wait();
    EXPECT_EQ(ran, 8);
  });
}

TEST(Stalls, GoroutinesThatEndLockedDoNotUseUpMs) {
  run_with(2, [] {
    constexpr int kRounds = 200;
    for (int i = 0; i < kRounds; ++i) {
      WaitGroup group;
      group.go([] { lock_os_thread(); });
      group.wait();
    }
    // Each goroutine ends its thread, but does not use up the M for ever.
    EXPECT_LT(ms_numbered(), std::uint32_t{kRounds / 2});
  });
}

class EndDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(EndDeathTest, SeenWhenTheLastToRunEndsLockedToItsThread) {
  EXPECT_EXIT(run(RunOptions{.max_procs = 1},
                  [] {
                    WaitGroup never;
                    never.add(1);
                    go([] { lock_os_thread(); });
                    never.wait();
                  }),
              ::testing::ExitedWithCode(2), "deadlock");
}

TEST_F(EndDeathTest, SeenWhenMainWasTheLastAndEndedByGoexit) {
  EXPECT_EXIT(run(RunOptions{.max_procs = 2}, [] { goexit(); }), ::testing::ExitedWithCode(2),
              "main goroutine has ended by goexit");
}

TEST(ExternalWakers, APromiseToAnEarlierRuntimeIsNoneToThisOne) {
  std::unique_ptr<ExternalWaker> stale;
  run_with(1, [&stale] { stale = std::make_unique<ExternalWaker>(); });
  run_with(1, [&stale] {  // most likely mapped where the earlier runtime was
    WaitGroup done;
    done.add(1);
    std::thread waker([&, promise = ExternalWaker()] {
      while (!awake_ms_are(0)) std::this_thread::yield();
      stale.reset();  // must not withdraw `promise`: the program would end as deadlocked
      while (!awake_ms_are(0)) std::this_thread::yield();
      done.done();
    });
    done.wait();
    waker.join();
  });
}

class ProcessDeathTest : public EndDeathTest {};

// Each exits the child process with status 7 if all is well.
[[noreturn]] void run_with_closed_descriptors() {
  ::close(0);
  ::close(1);
  std::_Exit(run([] { return ::fcntl(0, F_GETFD) >= 0 && ::fcntl(1, F_GETFD) >= 0 ? 7 : 1; }));
}
[[noreturn]] void write_to_nobody() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) std::_Exit(2);
  ::close(ends[0]);
  const int status = run([&ends] { return ::write(ends[1], "x", 1) == -1 ? 7 : 1; });
  struct sigaction after{};
  sigaction(SIGPIPE, nullptr, &after);
  std::_Exit(after.sa_handler == SIG_DFL ? status : 3);
}

TEST_F(ProcessDeathTest, DescriptorsThatWereClosedAreOpenedBeforeASocketTakesTheirNumber) {
  EXPECT_EXIT(run_with_closed_descriptors(), ::testing::ExitedWithCode(7), "");
}

TEST_F(ProcessDeathTest, AReaderThatHasGoneIsNoReasonToDie) {
  EXPECT_EXIT(write_to_nobody(), ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace tuza
