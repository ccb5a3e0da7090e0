// ThreadSanitizer sees goroutines as threads of their own, although their fibers serve many of them, one after another
// (arch/tsan_fibers.h).
#include <tuza/sched/go.h>
#include <tuza/sched/run.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <chrono>
#include <cstdlib>

namespace tuza {
namespace {

using namespace std::chrono_literals;

int g_shared = 0;

// Without a call into the runtime, which could order the goroutines.
void compute_for(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

// The first goroutine of a pair writes and ends long before the second writes, on another thread; used fibers are kept
// by then. Twenty pairs: both of one may run on one thread.
[[noreturn]] void write_one_after_the_other() {
  std::exit(run(RunOptions{.max_procs = 2}, [] {
    for (int pair = 0; pair < 20; ++pair) {
      WaitGroup group;
      group.go([] { g_shared = 1; });
      group.go([] {
        compute_for(5ms);
        g_shared = 2;
      });
      group.wait();
    }
  }));
}

TEST(TsanDeathTest, FindsARaceBetweenGoroutines) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(write_one_after_the_other(), ::testing::ExitedWithCode(66), "data race");
}

}  // namespace
}  // namespace tuza
