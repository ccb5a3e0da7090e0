// No descriptor is left, so /proc cannot tell which threads compute.
#include <sys/resource.h>
#include <tuza/sched/stats.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/hogs.h>
#include <tuza/sched/tests/testing.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using testing::compute;
using testing::Hogs;
using testing::kHogs;
using testing::run_with;
using testing::wait_for;

TEST(NoDescriptors, ComputingGoroutinesStillTakeTurns) {
  run_with(2, [] {
    std::atomic<bool> stop = false;
    WaitGroup sleepers;
    for (int i = 0; i < 8; ++i) {
      sleepers.go([&stop] {
        while (!stop) std::this_thread::sleep_for(5ms);
      });
    }
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    {
      Hogs hogs(kHogs, [](int) { compute(1); });
      wait_for([] { return sched_stats().lane >= kHogs; });
      const rlimit none{0, before.rlim_max};
      ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
      hogs.wait_for_turns(3);
      ::setrlimit(RLIMIT_NOFILE, &before);
    }
    stop = true;
    sleepers.wait();
  });
}

// With more Ps than cores, most of them lack a core at each look.
TEST(NoDescriptors, ComputingGoroutinesThatLackACoreAreSuspendedToo) {
  run_with(4, [] {
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const rlimit none{0, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    {
      const Hogs hogs(kHogs);
      wait_for([&hogs] { return hogs.surplus_is_suspended(); });
    }
    ::setrlimit(RLIMIT_NOFILE, &before);
  });
}

}  // namespace
}  // namespace tuza
