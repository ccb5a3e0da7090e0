// Sleeping. The tests of synchronization between goroutines are in sched/sync/tests.
#include <tuza/sched/go.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/sleep.h>

#include <chrono>
#include <mutex>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using testing::run_with;
using testing::WithProcs;
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
  run_with(GetParam(), [] {
    // A thousand sleeps of 20 ms each side by side, not one after the other: 20 s of sleep in far less.
    const auto before = Clock::now();
    WaitGroup group;
    for (int i = 0; i < 1000; ++i) group.go([] { sleep_for(20ms); });
    group.wait();
    EXPECT_LT(Clock::now() - before, 10s);
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

TEST_P(SyncTest, SleepsFromManyGoroutinesEndInOrder) {
  run_with(GetParam(), [] {
    Mutex mutex;
    std::vector<int> order;
    WaitGroup group;
    for (const int i : {5, 1, 4, 2, 3}) {
      group.go([&, i] {
        sleep_for(i * 40ms);
        const std::scoped_lock lock(mutex);
        order.push_back(i);
      });
    }
    group.wait();
    EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4, 5}));
  });
}

}  // namespace
}  // namespace tuza
