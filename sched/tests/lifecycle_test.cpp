// The start and the end of a runtime, the second and the hundredth in a process, and exit().
#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/go.h>
#include <tuza/sched/preempt.h>
#include <tuza/sched/rt/fork.h>
#include <tuza/sched/rt/lifecycle.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/sync/pool.h>
#include <tuza/sched/tests/children.h>
#include <tuza/sched/tests/hogs.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/tests/waits.h>
#include <ucontext.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using testing::compute;
using testing::Ended;
using testing::in_fork;
using testing::run_with;
using testing::scaled;
using testing::wait_for;
using testing::WaitableKind;

// -- Many runtimes.

// A thousand, each of which leaves goroutines in every kind of wait, some of them served when it ends.
TEST(Lifecycle, AThousandRunsLeaveGoroutinesInEveryKindOfWait) {
  for (int i = 0; i < 1000; ++i) {
    std::vector<std::unique_ptr<testing::Waitable>> waitables;
    for (const WaitableKind& kind : testing::waitables()) waitables.push_back(kind.make());
    run(RunOptions{.max_procs = 1 + i % 3}, [&] {
      for (const auto& waitable : waitables) {
        for (int k = 0; k < 1 + i % 2; ++k) go([&waitable] { waitable->wait(); });
      }
      go([] { sleep_for(1h); });
      go([] { yield(); });
      sleep_for(std::chrono::microseconds(i % 7 * 50));
      for (std::size_t w = 0; w < waitables.size(); ++w) {
        if ((static_cast<std::size_t>(i) + w) % 3 == 0) waitables[w]->serve();
      }
    });
    if (i % 5 == 0) {
      for (const auto& waitable : waitables) waitable->serve();
    }
  }
}

#if !defined(TUZA_ASAN) && !defined(TUZA_TSAN)  // which keep shadow memory, and mappings in quarantine
std::size_t address_space_kib() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * 4;
}

// In KiB, after the first ones. (The stacks of some more threads than there were before are less than 10 MiB.)
std::size_t address_space_of(int runs) {
  // Arenas reserve 64 MiB each, as many as there ever were threads at once: that may take many runs to be seen.
  ::setenv("MALLOC_ARENA_MAX", "1", 1);
  ::mallopt(M_ARENA_MAX, 1);
  const auto some_runs = [](int n) {
    for (int i = 0; i < n; ++i) {
      run(RunOptions{.max_procs = 2}, [] {
        for (int k = 0; k < 20; ++k) go([] { sleep_for(1h); });
        sleep_for(100us);
      });
    }
  };
  some_runs(50);  // thread stacks, which the C library keeps
  const std::size_t before = address_space_kib();
  some_runs(runs);
  return address_space_kib() - before;
}

TEST(Lifecycle, NoAddressSpaceStaysBehind) {
  const Ended ended = in_fork([] { ::_exit(address_space_of(200) < 200UL * 64 ? 7 : 8); });
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}
#endif

std::set<std::string> threads_named(std::string_view prefix) {
  std::set<std::string> found;
  DIR* tasks = ::opendir("/proc/self/task");
  while (const dirent* entry = ::readdir(tasks)) {
    std::ifstream comm("/proc/self/task/" + std::string(entry->d_name) + "/comm");
    std::string name;
    if (comm >> name && name.starts_with(prefix)) found.insert(entry->d_name);
  }
  ::closedir(tasks);
  return found;
}

TEST(Lifecycle, NoThreadStaysBehind) {
  for (int i = 0; i < 5; ++i) {
    run(RunOptions{.max_procs = 4}, [] {
      WaitGroup group;
      for (int k = 0; k < 20; ++k) {
        group.go([] { blocking(CallLength::kLong, [] { std::this_thread::sleep_for(1ms); }); });
      }
      group.wait();
    });
    EXPECT_EQ(threads_named("tuza"), std::set<std::string>());
  }
}

// -- Thread-locals.

std::atomic<int> g_alive{0};
struct PerThread {
  PerThread() { ++g_alive; }
  ~PerThread() {
    std::this_thread::sleep_for(2ms);  // as a buffer that is flushed
    --g_alive;
  }
  int uses = 0;
};

[[gnu::noinline]] void use_thread_local() {
  static thread_local PerThread local;
  ++local.uses;
}

TEST(Lifecycle, ThreadLocalsAreDestroyedBeforeRunReturns) {
  for (int i = 0; i < 5; ++i) {
    run(RunOptions{.max_procs = 4}, [] {
      WaitGroup group;
      for (int k = 0; k < 16; ++k) {
        group.go([] {
          blocking([] {
            use_thread_local();
            std::this_thread::sleep_for(1ms);
          });
        });
      }
      group.wait();
      EXPECT_GT(g_alive, 0);
    });
    EXPECT_EQ(g_alive, 0);
  }
}

// Their destructors may call what threads may call.
TEST(Lifecycle, ThreadLocalsMayUsePrimitivesWhenTheyAreDestroyed) {
  static Chan<int> events(1000);
  struct Tells {
    ~Tells() {
      (void)events.try_send(1);
      (void)try_go({}, [] {});
    }
  };
  run(RunOptions{.max_procs = 2}, [] {
    static thread_local Tells local;
    (void)local;
  });
  EXPECT_EQ(events.len(), 1u);
}

// A destructor that does not end keeps run() for a second at most.
TEST(Lifecycle, AThreadLocalThatBlocksIsLeftToItself) {
  static std::atomic<bool> blocks, stop;
  blocks = stop = false;
  struct Blocks {
    ~Blocks() {
      blocks = true;
      while (!stop) std::this_thread::sleep_for(1ms);
      blocks = false;
    }
  };
  run(RunOptions{.max_procs = 2}, [] {
    static thread_local Blocks local;
    (void)local;
  });
  EXPECT_TRUE(blocks);
  stop = true;
  while (blocks) std::this_thread::sleep_for(1ms);
}

// The thread of a goroutine that was locked to it has ended; its Ms is used again.
TEST(Lifecycle, ThreadsThatEndDuringTheRunAreJoined) {
  run_with(2, [] {
    const std::uint32_t made_before = rt::active()->ms_made;
    for (int i = 0; i < 50; ++i) {
      WaitGroup group;
      group.go([] {
        lock_os_thread();
        use_thread_local();
      });
      group.wait();
    }
    wait_for([] { return g_alive == 0; });
    EXPECT_LT(rt::active()->ms_made, made_before + 50) << "their Ms are not used again";
  });
}

// -- fork(): a thread that has forked does not end.

TEST(Lifecycle, AChildThatDiesWithItsParentsThreadLivesAsLongAsTheRuntime) {
  std::vector<pid_t> children;
  run_with(2, [&children] {
    WaitGroup group;
    Mutex mutex;
    // At once, on as many threads, most of which are not needed afterwards.
    for (int i = 0; i < 40; ++i) {
      group.go([&] {
        blocking(CallLength::kLong, [&] {
          std::this_thread::sleep_for(20ms);
          const pid_t child = ::fork();
          if (child == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (;;) ::pause();
          }
          const NoPreempt keep_going;
          const std::scoped_lock lock(mutex);
          children.push_back(child);
        });
      });
    }
    group.wait();
    // Until sysmon has ended what it wants to end.
    const auto threads = [] { return threads_named("tuza-m").size(); };
    sleep_for(2500ms);
    EXPECT_GE(threads(), children.size() / 2);
    for (const pid_t child : children) EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), 0) << "it was killed";
  });
  for (const pid_t child : children) {
    ::kill(child, SIGKILL);
    EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  }
}

// -- exit().

class ExitDeathTest : public testing::WithProcs {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};
TUZA_WITH_PROCS(ExitDeathTest);

// Its own thread goes on, in exit(); nobody else does.
[[noreturn]] void exit_beside_others(int procs) {
  static struct Ticks {
    std::atomic<int> ticks{0};
    ~Ticks() {
      const int before = ticks;
      std::this_thread::sleep_for(50ms);
      if (ticks != before) std::_Exit(9);  // goroutines run beside the destructors of statics
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
    sleep_for(5ms);
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
    sleep_for(100ms);
    std::exit(4);
  });
  std::_Exit(1);
}

TEST_P(ExitDeathTest, DoesNotWaitForThoseThatCompute) {
  EXPECT_EXIT(exit_beside_hogs(GetParam()), ::testing::ExitedWithCode(4), "");
}

// What a destructor of a static calls finds no runtime.
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

// Main returns while a goroutine exits: whoever is first.
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

#if !defined(TUZA_ASAN) && !defined(TUZA_TSAN)  // which want to be told of each switch of stacks
// On a stack that the program has made, as fibers and coroutines have them.
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

#if !defined(TUZA_ASAN) && !defined(TUZA_TSAN)  // both end the process themselves, with words of their own
TEST_P(ExitDeathTest, PthreadExitOnAGoroutineIsNamed) {
  EXPECT_EXIT(run(RunOptions{.max_procs = GetParam()}, [] { ::pthread_exit(nullptr); }),
              ::testing::KilledBySignal(SIGABRT), "pthread_exit");
}
#endif

// The queues are those of the parent.
TEST_P(ExitDeathTest, TheChildOfAForkMayExit) {
  static Mutex mutex;
  static Chan<int> chan;
  run(RunOptions{.max_procs = GetParam()}, [] {
    (void)mutex.try_lock();  // or it has been since the case before
    go([] { mutex.lock(); });
    for (int i = 0; i < 3; ++i) go([] { chan.recv(); });
    sleep_for(5ms);
    const Ended ended = in_fork([] { std::exit(6); });
    EXPECT_TRUE(ended.with_code(6)) << ended.status << ended.said;
  });
}

}  // namespace
}  // namespace tuza

#if defined(TUZA_ASAN)
// The child of a fork does not have the threads that hold what LeakSanitizer would miss.
extern "C" int __lsan_is_turned_off() { return tuza::rt::is_forked_child() ? 1 : 0; }
#endif
