// Sleeping. The tests of synchronization between goroutines are in sched/sync/tests.
#include <tuza/sched/go.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/sleep.h>

#include <chrono>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using namespace testing;
using Clock = std::chrono::steady_clock;

class SyncTest : public WithProcs {};
TUZA_WITH_PROCS(SyncTest);

TEST_P(SyncTest, SleepNeverWakesEarly) {
  run_with(GetParam(), [] {
    WaitGroup group;
    for (int i = 0; i < 50; ++i) {
      group.go([i] {
        const auto duration = std::chrono::microseconds(100 * i);
        const auto before = Clock::now();
        sleep_for(duration);
        EXPECT_GE(Clock::now() - before, duration);
      });
    }
    group.wait();
  });
}

TEST_P(SyncTest, SleepersDoNotKeepTheThread) {
  run(RunOptions{.max_procs = GetParam()}, [] {
    const int count = scaled(1000);
    for (int i = 0; i < count; ++i) go([] { sleep_for(1h); });
    wait_until_all_park();
    EXPECT_EQ(count_goroutines().waiting, static_cast<std::size_t>(count));
  });
}

TEST_P(SyncTest, SleepForNothingReturnsAtOnce) {
  run_with(GetParam(), [] {
    sleep_for(0ms);
    sleep_for(-5h);
    sleep_until(Clock::now() - 1h);
    sleep_until(Clock::time_point::min());
  });
}

}  // namespace
}  // namespace tuza
