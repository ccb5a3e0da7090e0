// The start and the end of a runtime, from the second to the hundredth in one process.
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/external.h>
#include <tuza/sched/go.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/preempt.h>
#include <tuza/sched/rt/idle/ended_threads.h>
#include <tuza/sched/tests/children.h>
#include <tuza/sched/tests/hogs.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/tests/waits.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using namespace testing;

// -- Many runtimes.

// A thousand runtimes; each abandons goroutines in every kind of wait, some of them served as it ends.
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

#if !defined(TUZA_ASAN) && !defined(TUZA_TSAN)  // which keep shadow memory, and quarantined mappings
std::size_t address_space_kib() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * 4;
}

// In KiB, after the first runs. (The stacks of a few additional threads are less than 10 MiB.)
std::size_t address_space_of(int runs) {
  // Each arena reserves 64 MiB, and there are as many as there ever were threads at once: it may take many
  // runs to show.
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

TEST(Lifecycle, NoThreadStaysBehind) {
  for (int i = 0; i < 5; ++i) {
    run(RunOptions{.max_procs = 4}, [] { block_at_once(20, [] {}); });
    // A thread that has been joined is listed until the kernel has run it to its end.
    testing::wait_for([] { return threads_named("tuza").empty(); });
  }
}

// -- Thread-locals.

std::atomic<int> g_alive{0};
struct PerThread {
  PerThread() { ++g_alive; }
  ~PerThread() {
    std::this_thread::sleep_for(2ms);  // like a buffer that is flushed
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
      block_at_once(16, &use_thread_local);
      EXPECT_GT(g_alive, 0);
    });
    EXPECT_EQ(g_alive, 0);
  }
}

// The destructors of thread_locals may call whatever threads may call.
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
  while (events.len() == 0)
    std::this_thread::yield();  // the portable form does not join a thread that had ended
}

// A destructor that does not return delays run() for a second at most.
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

// A goroutine locked to its thread ends the thread with it; the M is reused.
TEST(Lifecycle, ThreadsThatEndDuringTheRunAreJoined) {
  run_with(2, [] {
    const std::uint32_t before = ms_numbered();
    for (int i = 0; i < 50; ++i) {
      WaitGroup group;
      group.go([] {
        lock_os_thread();
        use_thread_local();
      });
      group.wait();
    }
    wait_for([] { return g_alive == 0; });
    EXPECT_LT(ms_numbered(), before + 25) << "their Ms are not used again";
  });
}

// -- fork(): a thread that has forked does not end.

TEST(Lifecycle, AChildThatDiesWithItsParentsThreadLivesAsLongAsTheRuntime) {
  std::vector<pid_t> children;
  std::set<std::string> forkers;
  run_with(2, [&] {
    Mutex mutex;
    // Most of these threads are not needed afterwards.
    block_at_once(40, [&] {
      const pid_t child = ::fork();
      if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) ::pause();
      }
      const NoPreempt keep_going;
      const std::scoped_lock lock(mutex);
      children.push_back(child);
      forkers.insert(std::to_string(::gettid()));
    });
    // Waits until sysmon has retired all threads that it retires.
    sleep_for(2500ms);
    EXPECT_TRUE(std::ranges::includes(threads_named("tuza-m"), forkers));
    for (const pid_t child : children) EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), 0) << "it was killed";
  });
  for (const pid_t child : children) {
    ::kill(child, SIGKILL);
    EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  }
}

// -- Events during the start and the end.

// Only the new goroutine exists yet, and it waits for the thread that has started it. (In a suite of its
// own, as the next test but one: ThreadSanitizer requires that children which start threads come from a
// process that had none.)
TEST(LifecycleBeginning, ThreadsMayStartGoroutinesBeforeTheMainGoroutineExists) {
  const Ended ended = in_fork([] {
    static Chan<int> never;
    std::atomic<bool> stop{false};
    std::thread other([&stop] {
      while (!stop) {
        (void)try_go({}, [] { never.recv(); });
        if (num_goroutine() > 50) std::this_thread::sleep_for(100us);
      }
    });
    for (int i = 0; i < scaled(200); ++i) {
      run(RunOptions{.max_procs = 2}, [] {
        const ExternalWaker other_thread;
        sleep_for(1ms);
      });
    }
    stop = true;
    other.join();
  });
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}

// Parking calls that need not wait, repeated: the runtime ends all the same, and the loop with it.
TEST(Lifecycle, ALoopOverCallsThatNeedNotWaitEnds) {
  static Semaphore semaphore(1);
  static Chan<int> chan(4);
  static WaitGroup nobody;
  static Barrier alone(1);
  const std::pair<const char*, void (*)()> calls[] = {
      {"Semaphore", [] { semaphore.acquire(), semaphore.release(); }},
      {"Chan", [] { chan.send(1), chan.recv(); }},
      {"WaitGroup", [] { nobody.wait(); }},
      {"Barrier", [] { alone.arrive_and_wait(); }},
      {"select", [] { select(on_recv(chan), otherwise()); }},
      {"yield", [] { yield(); }},
      {"checkpoint", [] { checkpoint(); }},
      {"BlockingCall", [] { const BlockingCall call; }},
  };
  for (const auto& [name, call] : calls) {
    std::atomic<long> done{0};
    run(RunOptions{.max_procs = 2}, [&done, call = call] {
      go([&done, call] {
        for (;; ++done) call();
      });
      while (done < 100) yield();
    });
    const long before = done;
    run([] { sleep_for(5ms); });
    EXPECT_LE(done, before + 1) << name
                                << ": it goes on";  // one that was between two calls comes to the next
  }
}

void nothing(int) {}

// Handlers that the program installs during a run belong to the program.
TEST(LifecycleHandlers, HandlersInstalledMeanwhileStay) {
  const Ended ended = in_fork([] {
    for (const int number : {SIGSEGV, SIGBUS, SIGPIPE, SIGURG}) {
      run(RunOptions{.max_procs = 1}, [number] { ::signal(number, &nothing); });
      struct sigaction now{};
      ::sigaction(number, nullptr, &now);
      if (now.sa_handler != &nothing) ::_exit(number);
    }
    const auto exits = [] { ::_exit(1); };
    run(RunOptions{.max_procs = 1}, [exits] { std::set_terminate(exits); });
    if (std::get_terminate() != static_cast<std::terminate_handler>(exits)) ::_exit(2);
  });
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}

// A thread that comes back only when the others are being joined is not joined, and keeps no memory.
TEST(Lifecycle, AThreadThatEndsTooLateToBeJoinedIsDetached) {
  rt::EndedThreads ended;
  ended.join_all(0);
  int state = -1;
  struct Late {
    rt::EndedThreads& ended;
    int& state;
    std::atomic<bool> done = false;
  } late{ended, state};
  pthread_t thread;
  const auto main = [](void* argument) -> void* {
    auto& self = *static_cast<Late*>(argument);
    self.ended.add_this_thread();
    pthread_attr_t attributes;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getdetachstate(&attributes, &self.state);
    pthread_attr_destroy(&attributes);
    self.done = true;
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, nullptr, main, &late), 0);
  while (!late.done) std::this_thread::yield();
  EXPECT_EQ(state, PTHREAD_CREATE_DETACHED);
}

}  // namespace
}  // namespace tuza
