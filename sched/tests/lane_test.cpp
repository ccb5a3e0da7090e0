// The lane: goroutines that compute without a P take turns on the cores, and delay no others.
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <tuza/sched/go.h>
#include <tuza/sched/preempt.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/tests/children.h>
#include <tuza/sched/tests/hogs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using testing::compute;
using testing::Hogs;
using testing::kHogs;
using testing::on_a_core;
using testing::run_with;
using testing::scaled;
using testing::suspended;
using testing::wait_for;
using testing::wait_for_suspensions;

class LaneTest : public testing::WithProcs {
 protected:
  void TearDown() override {
    for (const char* name : {"TUZA_DEBUG", "TUZA_PREEMPT_SIGNAL", "TUZA_EARLY_HANDOFF_US"}) unsetenv(name);
  }
};
TUZA_WITH_PROCS(LaneTest);

// -- Which goroutines run.

TEST_P(LaneTest, AsManyComputeAsThereArePsAndTheRestIsSuspended) {
  run_with(GetParam(), [] {
    Hogs hogs(kHogs);
    wait_for([&hogs] { return hogs.surplus_is_suspended(); });
    // On a slow machine this goroutine may have lost its P, too; it has one again after it has slept.
    wait_for([] { return sched_stats().lane <= std::uint32_t{kHogs}; });
    EXPECT_GE(sched_stats().suspend_signals, static_cast<std::uint64_t>(kHogs - max_procs()));
  });
}

TEST_P(LaneTest, SixMoreThanThereArePsMayComputeWhileNobodyWaitsForAP) {
  unsetenv("TUZA_LANE_EXTRA");
  run_with(GetParam(), [] {
    Hogs hogs(16);
    const auto room = static_cast<std::uint32_t>(max_procs()) + 6;
    wait_for(
        [room] { return sched_stats().lane_suspended == 16 - room && sched_stats().lane_computing == room; });
  });
  setenv("TUZA_LANE_EXTRA", "0", 1);
}

TEST_P(LaneTest, TheKernelSeesNoMoreOfThemThanThereArePs) {
  run_with(GetParam(), [] {
    std::array<std::atomic<long>, kHogs> threads{};
    Hogs hogs(kHogs, [&threads](int i) {
      std::atomic<long>& mine = threads[static_cast<std::size_t>(i)];
      if (mine == 0) mine = ::syscall(SYS_gettid);
      compute(1);
    });
    wait_for([&] {
      int on_cores = 0;
      for (const auto& thread : threads) {
        if (thread == 0) return false;
        on_cores += on_a_core(thread) ? 1 : 0;
      }
      return hogs.surplus_is_suspended() && on_cores <= max_procs();
    });
  });
}

TEST_P(LaneTest, EachGetsItsQuantum) {
  run_with(GetParam(), [] {
    Hogs hogs(kHogs, [](int) { compute(1); });
    wait_for([&hogs] { return hogs.surplus_is_suspended(); });
    hogs.wait_for_turns(3);
    wait_for([&hogs] { return hogs.surplus_is_suspended(); });
  });
}

TEST_P(LaneTest, SuspendedOnesEndWhenTheyAreTold) {
  run_with(GetParam(), [] {
    for (int i = 0; i < 3; ++i) {
      Hogs hogs(kHogs);
      wait_for([&hogs] { return hogs.surplus_is_suspended(); });
      hogs.end();
      wait_for([] { return sched_stats().lane == 0 && sched_stats().lane_suspended == 0; });
    }
  });
}

// Two hundred in all; a thousand in `./dev test all`, which sets TUZA_HOG_SECONDS.
TEST_P(LaneTest, HundredsOfHogsLeaveNothingBehind) {
  setenv("TUZA_EARLY_HANDOFF_US", "100", 1);
  run_with(GetParam(), [] {
    constexpr int kBatch = 50;
    const int hogs = std::getenv("TUZA_HOG_SECONDS") == nullptr ? 200 : 1000;
    for (int i = 0; i < std::max(scaled(hogs / kBatch), 2); ++i) {
      std::atomic<int> begun = 0;
      WaitGroup group;
      for (int k = 0; k < kBatch; ++k) {
        group.go([&begun] {  // each waits for all the others, so all are there at once
          ++begun;
          while (begun.load(std::memory_order_relaxed) < kBatch) {
          }
        });
      }
      group.wait();
    }
    EXPECT_LT(testing::ms_numbered(), std::uint32_t{2 * kBatch + 20});
    wait_for([] { return sched_stats().lane == 0; });
  });
}

TEST_P(LaneTest, ThePsMayBecomeMoreOrFewerMeanwhile) {
  run_with(GetParam(), [] {
    std::mt19937 random(1);
    std::atomic<int> short_ones = 0;
    WaitGroup group;
    Hogs hogs(kHogs, [](int) { compute(1); });
    for (int i = 0; i < scaled(100); ++i) {
      set_max_procs(static_cast<int>(random() % 4) + 1);
      for (int k = 0; k < 20; ++k) group.go([&short_ones] { ++short_ones; });
      sleep_for(std::chrono::milliseconds(random() % 5));
    }
    group.wait();
    EXPECT_EQ(short_ones, scaled(100) * 20);
    for (const int procs : {1, 4, 2}) {
      set_max_procs(procs);
      wait_for([&hogs] { return hogs.surplus_is_suspended(); });
    }
  });
}

// -- How suspension is configured.

TEST_P(LaneTest, WithSuspensionDisabledOthersStillRun) {
  for (const bool by_debug : {true, false}) {
    setenv(by_debug ? "TUZA_DEBUG" : "TUZA_PREEMPT_SIGNAL", by_debug ? "asyncpreemptoff=1" : "0", 1);
    run_with(GetParam(), [] {
      Hogs hogs(kHogs);
      wait_for([] { return sched_stats().lane == kHogs; });
      WaitGroup others;
      std::atomic<int> ran = 0;
      for (int i = 0; i < 50; ++i) others.go([&ran] { ++ran; });
      others.wait();
      for (int i = 0; i < 50; ++i) sleep_for(1ms);
      EXPECT_EQ(sched_stats().lane_suspended, 0u);
      EXPECT_EQ(sched_stats().suspend_signals, 0u);
    });
    TearDown();
  }
}

TEST_P(LaneTest, AnotherSignalMayBeChosen) {
  for (const int signal : {SIGUSR2, SIGRTMIN + 3}) {
    setenv("TUZA_PREEMPT_SIGNAL", std::to_string(signal).c_str(), 1);
    run_with(GetParam(), [] {
      Hogs hogs(kHogs);
      wait_for([&hogs] { return hogs.surplus_is_suspended(); });
      wait_for_suspensions(4);
    });
    TearDown();
  }
}

// -- Many wait in the kernel, and nothing else happens.

// Waits, on a thread, until sysmon hardly wakes up any more: some hundred ticks in `time`, as long as it scans. In more than a
// second it is seen whether it has work for each second, such as threads to end.
void wait_until_sysmon_rests(std::chrono::milliseconds time) {
  for (std::uint64_t before = sched_stats().sysmon_ticks;;) {
    std::this_thread::sleep_for(time);
    const std::uint64_t ticks = sched_stats().sysmon_ticks;
    if (ticks - std::exchange(before, ticks) <= 5) return;
  }
}

TEST_P(LaneTest, IsLeftAloneWhileAllWaitAndSeenWhenTheyBeginToCompute) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const std::chrono::milliseconds rest = GetParam() == 2 ? 1'200ms : 200ms;
  run_with(GetParam(), [&] {
    std::atomic<bool> ended = false;
    std::thread outside([&] {
      while (sched_stats().lane != std::uint32_t{kHogs}) std::this_thread::sleep_for(1ms);
      wait_until_sysmon_rests(rest);
      EXPECT_EQ(::write(pipe[1], "12345678", kHogs), kHogs);
      const auto surplus = static_cast<std::uint32_t>(kHogs - max_procs());
      while (sched_stats().lane_suspended != surplus) std::this_thread::sleep_for(1ms);
      ended = true;
    });
    WaitGroup group;
    for (int i = 0; i < kHogs; ++i) {
      group.go([&] {
        char byte = 0;
        EXPECT_EQ(::read(pipe[0], &byte, 1), 1);
        while (!ended) compute(1);
      });
    }
    group.wait();
    outside.join();
  });
  for (const int end : pipe) ::close(end);
}

// -- What must not be disturbed.

// Holds a NoPreempt scope until told to leave it; then computes until told to stop.
struct Protected {
  std::atomic<std::uint64_t> id{0};
  std::atomic<std::uint64_t> rounds{0};
  std::atomic<bool> leave{false}, outside{false}, stop{false};

  void run() {
    {
      const NoPreempt scope;
      id = goroutine_id();
      while (!leave) ++rounds;
    }
    outside = true;
    while (!stop) compute(1);
  }
};

TEST(Lane, InsideNoPreemptNobodyIsSuspendedAndAfterwardsAsBefore) {
  run_with(2, [] {
    Protected one;
    WaitGroup group;
    group.go([&one] { one.run(); });
    Hogs hogs(kHogs);
    wait_for([&one] { return one.id != 0; });
    const std::uint64_t signals = sched_stats().suspend_signals;
    int changes = 0;
    while (sched_stats().suspend_signals < signals + 10) {
      const std::uint64_t rounds = one.rounds;
      EXPECT_FALSE(suspended(one.id));
      wait_for([&] { return one.rounds > rounds; });
      ++changes;
    }
    EXPECT_GT(changes, 0);
    one.leave = true;
    wait_for([&one] { return one.outside.load() && suspended(one.id); });
    one.stop = true;
    group.wait();
  });
}

// One exception: a goroutine that seemed to compute, and has gone to sleep since. If sleepers were not
// distinguished from computing goroutines, every twelfth signal would hit one.
TEST_P(LaneTest, WaitsInTheKernelAreHardlyEverInterrupted) {
  run_with(GetParam(), [] {
    std::atomic<int> interrupted = 0, sleeps = 0;
    std::atomic<bool> stop = false;
    WaitGroup sleepers;
    for (int i = 0; i < 8; ++i) {
      sleepers.go([&, i] {
        const struct timespec time{0, (1 + 5 * i) * 1'000'000};
        while (!stop) {
          interrupted += ::nanosleep(&time, nullptr) != 0 ? 1 : 0;
          ++sleeps;
        }
      });
    }
    Hogs hogs(kHogs);
    wait_for([&hogs] { return hogs.surplus_is_suspended(); });
    const std::uint64_t before = sched_stats().suspend_signals;
    wait_for_suspensions(50);
    wait_for([&sleeps] { return sleeps >= 100; });
    const std::uint64_t allowed = (sched_stats().suspend_signals - before) / 24;
    EXPECT_LE(interrupted, std::max<std::uint64_t>(allowed, rt::kTsan ? 5 : 2));
    stop = true;
    sleepers.wait();
  });
}

std::uint64_t thrown_through(std::uint64_t value, int depth) {
  if (depth == 0) throw value;
  try {
    return thrown_through(value, depth - 1);
  } catch (const std::uint64_t& inner) {
    try {
      throw std::runtime_error(std::to_string(value));
    } catch (const std::runtime_error& error) {
      if (error.what() != std::to_string(value)) return 0;
    }
    if (inner != value || std::uncaught_exceptions() != 0) return 0;
    throw;
  }
}

TEST_P(LaneTest, ExceptionsInFlightContinueWhereTheyWere) {
  run_with(GetParam(), [] {
    std::atomic<int> wrong = 0;
    std::array<std::uint64_t, kHogs> values{};
    Hogs hogs(kHogs, [&](int i) {
      const std::uint64_t value =
          ++values[static_cast<std::size_t>(i)] * kHogs + static_cast<std::uint64_t>(i);
      try {
        thrown_through(value, 4);
        ++wrong;
      } catch (const std::uint64_t& caught) {
        wrong += caught != value || std::uncaught_exceptions() != 0 ? 1 : 0;
      }
    });
    wait_for_suspensions(30);
    hogs.wait_for_turns(2);
    EXPECT_EQ(wrong, 0);
  });
}

TEST_P(LaneTest, AMutexWhoseHolderIsSuspendedIsPassedOnInTime) {
  run_with(GetParam(), [] {
    std::mutex mutex;
    std::uint64_t guarded = 0;
    std::array<std::uint64_t, kHogs> own{};
    {
      Hogs hogs(kHogs, [&](int i) {
        const std::scoped_lock lock(mutex);
        ++guarded;
        ++own[static_cast<std::size_t>(i)];
        compute(1);
      });
      wait_for_suspensions(10);
      hogs.wait_for_turns(2);
    }
    std::uint64_t sum = 0;
    for (const std::uint64_t n : own) sum += n;
    EXPECT_EQ(guarded, sum);
  });
}

TEST_P(LaneTest, LockedGoroutinesKeepTheirThreads) {
  run_with(GetParam(), [] {
    std::atomic<bool> stop = false;
    std::atomic<int> moved = 0;
    std::array<std::atomic<int>, kHogs> rounds{};
    WaitGroup group;
    for (int i = 0; i < kHogs; ++i) {
      group.go([&, i] {
        lock_os_thread();
        const long thread = ::syscall(SYS_gettid);
        while (!stop) {
          for (int k = 0; k < 100 && !stop; ++k) {
            compute(1, 20'000);
            moved += ::syscall(SYS_gettid) != thread ? 1 : 0;
          }
          yield();
          moved += ::syscall(SYS_gettid) != thread ? 1 : 0;
          ++rounds[static_cast<std::size_t>(i)];
        }
        unlock_os_thread();
      });
    }
    WaitGroup others;
    std::atomic<int> ran = 0;
    for (int i = 0; i < 50; ++i) others.go([&ran] { ++ran; });
    others.wait();
    for (const auto& n : rounds) wait_for([&n] { return n >= 2; });
    stop = true;
    group.wait();
    EXPECT_EQ(moved, 0);
  });
}

TEST_P(LaneTest, AlternatelyComputingAndParkingGivesRightResults) {
  run_with(GetParam(), [] {
    constexpr int kRounds = scaled(20) > 4 ? scaled(20) : 4;
    Mutex mutex;
    int guarded = 0;
    std::atomic<int> helped = 0, wrong = 0;
    const std::uint64_t right = compute(7, 1'000'000);
    WaitGroup group;
    for (int i = 0; i < kHogs; ++i) {
      group.go([&] {
        for (int k = 0; k < kRounds; ++k) {
          wrong += compute(7, 1'000'000) != right ? 1 : 0;
          mutex.lock();
          const int before = guarded;
          wrong += compute(7, 1'000'000) != right ? 1 : 0;
          if (k % 4 == 0) sleep_for(1ms);
          guarded = before + 1;
          mutex.unlock();
          WaitGroup helper;
          helper.go([&helped] { ++helped; });
          helper.wait();
        }
      });
    }
    group.wait();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(guarded, kHogs * kRounds);
    EXPECT_EQ(helped, kHogs * kRounds);
  });
}

// -- The deadlock detector. A false report would end the program.

void burn_for(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) compute(1);
}

// Of as many as there are Ps, one loses its P; then it is alone, until all others have looked for a deadlock.
TEST_P(LaneTest, WaitingForAGoroutineWithoutAPIsNoDeadlock) {
  run_with(GetParam(), [] {
    for (const bool burns : {true, false}) {
      std::atomic<bool> lost = false, main_waits = false;
      const auto stay = [burns] { burns ? void(compute(1)) : void(::usleep(1000)); };
      WaitGroup group;
      for (int i = 0; i < max_procs(); ++i) {
        group.go([&, stay] {
          while (!lost) {
            stay();
            if (testing::own_p() >= 0 || lost.exchange(true)) continue;
            while (!main_waits || !testing::awake_ms_are(1)) stay();
          }
        });
      }
      wait_for([&lost] { return lost.load(); });
      main_waits = true;
      group.wait();
    }
  });
}

TEST_P(LaneTest, WaitingForSuspendedGoroutinesIsNoDeadlock) {
  run_with(GetParam(), [] {
    WaitGroup group;
    for (int i = 0; i < kHogs; ++i) group.go([] { burn_for(300ms); });
    group.wait();
  });
}

class LaneDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

void deadlock_after_hogs() {
  run(RunOptions{.max_procs = 2}, [] {
    for (int i = 0; i < kHogs; ++i) go([] { burn_for(150ms); });
    WaitGroup never;
    never.add(1);
    never.wait();
  });
}

TEST_F(LaneDeathTest, ADeadlockIsReportedOnceTheLastHogHasEnded) {
  EXPECT_EXIT(deadlock_after_hogs(), ::testing::ExitedWithCode(2), "all goroutines are asleep - deadlock!");
}

}  // namespace
}  // namespace tuza
