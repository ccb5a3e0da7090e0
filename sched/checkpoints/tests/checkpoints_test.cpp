// Code with checkpoints in it shares its P by itself, where it may, and is left alone where it may not.
//
// Signals are off, and there is one P: whoever runs beside a goroutine that is not suspended runs because
// that one has parked, or because its P was taken.
#include <tuza/sched/arch/last_error.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/checkpoints/tests/instrumented.h>
#include <tuza/sched/go.h>
#include <tuza/sched/preempt.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <thread>
#include <vector>

namespace tuza {
namespace {

using testing::run_with;
using namespace std::chrono_literals;

// A debug build of Tuza leaves the checkpoints out.
#if defined(__OPTIMIZE__)
constexpr bool kParks = true;
#else
constexpr bool kParks = false;
#endif

// Computing is slow with sanitizers only.
constexpr std::uint64_t rounds(std::uint64_t n) { return rt::kTsan || rt::kAsan ? n / 10 : n; }

class Checkpoints : public ::testing::Test {
 protected:
  Checkpoints() { ::setenv("TUZA_DEBUG", "asyncpreemptoff=1", 1); }
};
using CheckpointsDeathTest = Checkpoints;

struct Watched {
  std::atomic<rt::G*> g{nullptr};
  std::atomic<bool> leave{false};
  std::atomic<bool> over{false};
};

// Whether `body` is ever seen off its thread while it spins on Watched::leave: for some 50 ms, or, if that is
// `expected`, until it is seen.
template <class Body>
bool parks_in(Body body, bool expected = false) {
  Watched watched;
  WaitGroup group;
  group.go([&watched, &body] {
    body([&watched] {
      watched.g = rt::current_m()->current;
      instrumented::spin_until(watched.leave);
      watched.over = true;
    });
  });
  yield();
  bool parked = false;
  const auto end = std::chrono::steady_clock::now() + 50ms;
  while (std::chrono::steady_clock::now() < end || watched.g == nullptr || (expected && !parked)) {
    sleep_for(1ms);
    const rt::G* g = watched.g;
    for (int i = 0; i < 1000 && g != nullptr; ++i) {
      if (g->status.load() != rt::GStatus::kRunning) parked = true;
    }
  }
  watched.leave = true;
  group.wait();
  return parked;
}

TEST_F(Checkpoints, AreWhereLoopsPark) {
  run_with(1, [] { EXPECT_EQ(parks_in([](auto spin) { spin(); }, kParks), kParks); });
}

TEST_F(Checkpoints, DoNothingInNoPreempt) {
  run_with(1, [] {
    EXPECT_FALSE(parks_in([](auto spin) {
      const NoPreempt here;
      spin();
    }));
  });
}

TEST_F(Checkpoints, DoNothingInABlockingCall) {
  run_with(1, [] { EXPECT_FALSE(parks_in([](auto spin) { blocking(CallLength::kLong, spin); })); });
}

// On the goroutine's own stack, and on the thread's signal stack, where the signal need not be blocked.
TEST_F(Checkpoints, DoNothingInASignalHandler) {
  for (const int flags : {0, SA_ONSTACK, SA_ONSTACK | SA_NODEFER}) {
    struct sigaction action{}, before{};
    action.sa_handler = &instrumented::spin_in_handler;
    action.sa_flags = flags;
    ::sigaction(SIGUSR1, &action, &before);
    instrumented::g_in_handler = instrumented::g_leave_handler = false;
    run_with(1, [] {
      std::atomic<rt::G*> interrupted{nullptr};
      WaitGroup group;
      group.go([&interrupted] {
        interrupted = rt::current_m()->current;
        ::raise(SIGUSR1);
      });
      while (!instrumented::g_in_handler) sleep_for(1ms);
      for (int i = 0; i < 30; ++i) {
        sleep_for(1ms);
        EXPECT_EQ(interrupted.load()->status.load(), rt::GStatus::kRunning);
      }
      instrumented::g_leave_handler = true;
      group.wait();
    });
    ::sigaction(SIGUSR1, &before, nullptr);
  }
}

// The child of vfork has its parent's memory, and looks like its parent's M.
TEST_F(Checkpoints, DoNothingInAChildProcess) {
  if (rt::kTsan) GTEST_SKIP() << "TSan's children of fork may not do as much";
  for (const auto split : {&::fork, &::vfork}) {
    run_with(1, [split] {
      WaitGroup group;
      group.go([split] {
        const pid_t child = split();
        if (child == 0) {
          const auto end = std::chrono::steady_clock::now() + 30ms;
          while (std::chrono::steady_clock::now() < end) instrumented::chain(1000);
          ::_exit(7);
        }
        int status = 0;
        EXPECT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << status;
      });
      for (int i = 0; i < 30; ++i) sleep_for(1ms);
      group.wait();
    });
  }
}

TEST_F(Checkpoints, KeepManyThatComputeOnFewThreads) {
  if (!kParks) GTEST_SKIP() << "no checkpoints in a debug build";
  constexpr int kHogs = 60;
  run_with(1, [] {
    std::atomic<bool> stop = false;
    WaitGroup hogs;
    for (int i = 0; i < kHogs; ++i) hogs.go([&stop] { instrumented::spin_until(stop); });
    std::uint32_t threads = 0;
    for (int i = 0; i < 100; ++i) {
      sleep_for(5ms);
      threads = std::max(threads, rt::active()->ms_live.load());
    }
    EXPECT_LT(threads, kHogs / 2);
    stop = true;
    hogs.wait();
  });
}

TEST_F(Checkpoints, DoNotChangeWhatIsComputed) {
  constexpr std::uint64_t kRounds = rounds(20'000'000);
  const std::uint64_t right = instrumented::chain(kRounds);  // on a plain thread
  for (const int procs : {1, 3}) {
    run_with(procs, [right] {
      WaitGroup group;
      for (std::uint64_t i = 0; i < 8; ++i) {
        group.go([right] { EXPECT_EQ(instrumented::chain(kRounds), right); });
        group.go([i] {
          std::vector<std::uint64_t> numbers;
          for (std::uint64_t n = 0; n < 100'000; ++n) numbers.push_back(n * (2 * i + 77'777) % 100'003);
          instrumented::sort(numbers);
          EXPECT_TRUE(std::ranges::is_sorted(numbers));
        });
      }
      group.wait();
    });
  }
}

TEST_F(Checkpoints, LetExceptionsPass) {
  for (const int procs : {1, 3}) {
    run_with(procs, [] {
      WaitGroup group;
      for (int id = 1; id <= 8; ++id) {
        group.go([id] {
          for (int round = 0; round < 20; ++round) {
            EXPECT_EQ(instrumented::throw_through(id, rounds(300'000)), id);
          }
        });
      }
      group.wait();
    });
  }
}

TEST_F(Checkpoints, LeaveTheErrorNumberAlone) {
  run_with(2, [] {
    WaitGroup group;
    for (int number = 1; number <= 6; ++number) {
      group.go([number] {
        for (int round = 0; round < 20; ++round) {
          set_last_error(number);
          instrumented::chain(rounds(1'000'000));
          EXPECT_EQ(last_error(), number);
        }
      });
    }
    group.wait();
  });
}

TEST_F(Checkpoints, AreHarmlessWhereThereIsNoGoroutine) {
  EXPECT_EQ(instrumented::kChainAtStart, instrumented::chain(instrumented::kChainAtStartRounds));
  run_with(1, [] {
    std::atomic<std::uint64_t> other = 0;
    std::thread thread([&other] { other = instrumented::chain(instrumented::kChainAtStartRounds); });
    EXPECT_EQ(instrumented::chain(instrumented::kChainAtStartRounds), instrumented::kChainAtStart);
    thread.join();
    EXPECT_EQ(other, instrumented::kChainAtStart);
  });
}

// A thread that is lost in its own code when the runtime ends must not stop there: it may hold what the rest
// of the program needs.
TEST_F(Checkpoints, LetAGoroutineRunOnThatTheRuntimeLeftBehind) {
  static std::atomic<bool> stop, in, out;
  stop = in = out = false;
  run(RunOptions{.max_procs = 1}, [] {
    go([] {
      const NoPreempt here;  // so that it is still there at the end
      in = true;
      instrumented::spin_until(stop);
      out = true;
      for (;;) std::this_thread::sleep_for(1h);
    });
    while (!in) sleep_for(1ms);
    return 0;
  });
  stop = true;
  while (!out) std::this_thread::sleep_for(1ms);
}

#if !defined(TUZA_ASAN) && !defined(TUZA_TSAN) && defined(__OPTIMIZE__)
TEST_F(CheckpointsDeathTest, AMutexThatIsHeldIsReported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ::setenv("TUZA_DEBUG", "asyncpreemptoff=1,heldmutex", 1);
  const auto hold_one = [] {
    run_with(1, [] {
      std::mutex mutex;
      const std::atomic<bool> never = false;
      go({.name = "careless"}, [&mutex, &never] {
        const std::scoped_lock lock(mutex);
        instrumented::spin_until(never);
      });
      for (;;) sleep_for(1ms);
    });
  };
  EXPECT_DEATH(hold_one(), "goroutine [0-9]+ \\(careless\\) parks while it holds 1 std::mutex");
}
#endif

}  // namespace
}  // namespace tuza
