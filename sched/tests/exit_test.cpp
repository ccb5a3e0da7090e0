// exit() on goroutines, on other threads, on fibers, and in the children of forks.
#include <pthread.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/detail/spin_lock.h>
#include <tuza/sched/go.h>
#include <tuza/sched/rt/base/raw_mutex.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/future.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/pool.h>
#include <tuza/sched/tests/children.h>
#include <tuza/sched/tests/hogs.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/after_func.h>
#include <tuza/sched/time/ticker.h>
#include <tuza/sched/time/timer.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using namespace testing;

class ExitDeathTest : public testing::WithProcs {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};
TUZA_WITH_PROCS(ExitDeathTest);

// Its own thread continues in exit(); no other goroutine does.
[[noreturn]] void exit_beside_others(int procs) {
  static struct Ticks {
    std::atomic<int> ticks{0};
    ~Ticks() {
      const int before = ticks;
      std::this_thread::sleep_for(50ms);
      if (ticks != before) std::_Exit(9);  // goroutines run during the destructors of statics
      if (threads_named("tuza-sysmon").size() + threads_named("tuza-maker").size() != 0) std::_Exit(10);
    }
  } ticks;
  std::_Exit(run(RunOptions{.max_procs = procs}, [] {
    for (int i = 0; i < 20; ++i) {
      go([] {
        for (;; ++ticks.ticks) sleep_for(1ms);
      });
    }
    go([] {
      for (;; ++ticks.ticks) yield();
    });
    wait_for([] { return ticks.ticks > 100; });
    std::exit(4);
    return 0;
  }));
}

TEST_P(ExitDeathTest, EndsTheRuntimeBeforeStaticsAreDestroyed) {
  EXPECT_EXIT(exit_beside_others(GetParam()), ::testing::ExitedWithCode(4), "");
}

[[noreturn]] void exit_beside_hogs(int procs) {
  static std::vector<std::string> statics(1000, std::string(100, 'x'));
  run(RunOptions{.max_procs = procs}, [] {
    for (int i = 0; i < 20; ++i) {
      go([] {
        for (;;) {
          compute(1, 1000);
          const std::string allocated(1000, 'y');
        }
      });
    }
    wait_for([] { return sched_stats().lane_suspended > 0; });
    std::exit(4);
  });
  std::_Exit(1);
}

TEST_P(ExitDeathTest, DoesNotWaitForComputingGoroutines) {
  EXPECT_EXIT(exit_beside_hogs(GetParam()), ::testing::ExitedWithCode(4), "");
}

// Calls made by destructors of statics find no runtime.
[[noreturn]] void exit_and_use_statics(int procs) {
  static struct Uses {
    Mutex mutex;
    Chan<int> chan{4};
    Timer timer;
    Pool<std::string> pool;
    ~Uses() {
      const std::scoped_lock lock(mutex);
      if (!chan.try_send(1) || chan.recv() != 1) std::_Exit(9);
      timer.stop();
      if (try_go({}, [] {}).has_value()) std::_Exit(10);
      if (!pool.get()->empty()) std::_Exit(11);
      std::thread([this] { chan.close(); }).join();
      if (chan.recv().has_value()) std::_Exit(12);
    }
  } uses;
  run(RunOptions{.max_procs = procs}, [] {
    uses.timer.reset(1h);
    (void)uses.pool.get();
    std::exit(4);
  });
  std::_Exit(1);
}

TEST_P(ExitDeathTest, StaticsAreUsedAsOutsideARuntime) {
  EXPECT_EXIT(exit_and_use_statics(GetParam()), ::testing::ExitedWithCode(4), "");
}

// Main returns while a goroutine calls exit(): either may be first.
[[noreturn]] void exit_while_main_returns(int procs, int round) {
  static Chan<int> chan;
  std::exit(run(RunOptions{.max_procs = procs}, [round] {
    for (int i = 0; i < 5; ++i) go([] { chan.recv(); });
    go([] { std::exit(4); });
    for (int i = 0; i < round; ++i) yield();
    return 4;
  }));
}

TEST_P(ExitDeathTest, MainMayReturnAtTheSameTime) {
  for (int round = 0; round < 10; ++round) {
    EXPECT_EXIT(exit_while_main_returns(GetParam(), round), ::testing::ExitedWithCode(4), "");
  }
}

[[noreturn]] void exit_after_many_runs(int procs) {
  for (int i = 0; i < 3; ++i) run(RunOptions{.max_procs = procs}, [] { go([] { sleep_for(1h); }); });
  std::exit(4);
}

TEST_P(ExitDeathTest, AfterARunItIsLikeAnyOther) {
  EXPECT_EXIT(exit_after_many_runs(GetParam()), ::testing::ExitedWithCode(4), "");
}

#if !defined(TUZA_ASAN) && !defined(TUZA_TSAN)  // which must be told of each switch of stacks
// On a stack that the program has made, as fibers and coroutines do.
[[noreturn]] void exit_on_a_fiber(int procs) {
  run(RunOptions{.max_procs = procs}, [] {
    static ucontext_t fiber, back;
    static std::array<char, 64 << 10> stack;
    ::getcontext(&fiber);
    fiber.uc_stack.ss_sp = stack.data();
    fiber.uc_stack.ss_size = stack.size();
    fiber.uc_link = &back;
    ::makecontext(&fiber, [] { std::exit(4); }, 0);
    ::swapcontext(&back, &fiber);
  });
  std::_Exit(1);
}

TEST_P(ExitDeathTest, AFiberMayExit) {
  EXPECT_EXIT(exit_on_a_fiber(GetParam()), ::testing::ExitedWithCode(4), "");
}
#endif

#if !defined(TUZA_ASAN) && !defined(TUZA_TSAN)  // both end the process themselves, with their own messages
TEST_P(ExitDeathTest, PthreadExitOnAGoroutineIsNamed) {
  EXPECT_EXIT(run(RunOptions{.max_procs = GetParam()}, [] { ::pthread_exit(nullptr); }),
              ::testing::KilledBySignal(SIGABRT), "pthread_exit");
}
#endif

// TSan does not hold the locks of its allocator across fork(): the child may find one locked, and waits for ever.
#if !defined(TUZA_TSAN)
// The wait queues are the parent's.
TEST_P(ExitDeathTest, TheChildOfAForkMayExit) {
  static Mutex mutex;
  static Chan<int> chan;
  run(RunOptions{.max_procs = GetParam()}, [] {
    (void)mutex.try_lock();  // or the previous case has left it locked
    go([] { mutex.lock(); });
    for (int i = 0; i < 3; ++i) go([] { chan.recv(); });
    wait_until_all_park();
    const Ended ended = in_fork([] { std::exit(6); });
    EXPECT_TRUE(ended.with_code(6)) << ended.status << ended.said;
  });
}

// exit() needs nothing of the parent's: timers, contexts and their functions, promises.
TEST_P(ExitDeathTest, TheChildOfAForkMayExitWhateverItsStaticsDo) {
  const Ended ended = in_fork([procs = GetParam()] {
    struct Statics {
      Timer timer{1h};
      Ticker ticker{1ms};
      DelayedCall call = after_func(1h, [] {});
      CancellableContext cancellable = with_timeout(Context(), 1h);
      WhenDone function = when_done(cancellable.ctx(), [] { ::_exit(9); });
      Promise<int> promise;
      Future<int> future = promise.future();
    };
    run(RunOptions{.max_procs = procs}, [] {
      static std::optional<Statics> statics;
      statics.emplace();
      go([] { (void)statics->timer.wait(); });
      go([] { (void)statics->cancellable.ctx().wait(); });
      go([] { (void)statics->future.get(); });
      wait_until_all_park();
      const auto exits = [] { return in_fork([] { std::exit(6); }); };
      const Ended of_goroutine = exits();
      Ended of_thread;
      blocking([&] { std::thread([&] { of_thread = exits(); }).join(); });
      for (const Ended& child : {of_goroutine, of_thread}) {
        std::fputs(child.said.c_str(), stderr);
        if (!child.with_code(6)) ::_exit(8);
      }
      ::_exit(7);
    });
  });
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}
#endif

// The locks are held by a thread that the child does not have.
TEST_P(ExitDeathTest, TheChildOfAForkDoesNotWaitForLocksOfItsParent) {
  testing::run_with(GetParam(), [] {
    rt::SpinLock spin;
    rt::RawMutex mutex;
    {
      const std::scoped_lock held(spin, mutex);
      const Ended ended = in_fork([&] {
        spin.lock();
        mutex.lock();
      });
      EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
    }
  });
}

}  // namespace
}  // namespace tuza

#if defined(TUZA_ASAN)
// The child of a fork lacks the threads that hold references to memory; LeakSanitizer would report it as
// leaked.
static const pid_t g_process = ::getpid();
extern "C" int __lsan_is_turned_off() { return ::getpid() != g_process ? 1 : 0; }
#endif
