// tuza::run, deadlock detection, changes of the number of Ps, locked threads.
#include <tuza/sched/external.h>
#include <tuza/sched/go.h>
#include <tuza/sched/rt/base/foreign_threads.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/children.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/sleep.h>

#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include <sys/prctl.h>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using namespace testing;

TEST(Run, ReturnsWhatMainReturns) {
  EXPECT_EQ(run([] { return 42; }), 42);
  EXPECT_EQ(run([] {}), 0);
  EXPECT_EQ(run([]() -> Result<void> { return {}; }), 0);
}

TEST(Run, AnErrorBecomesOneLineAndStatusOne) {
  run([] {});  // the first run of a chaos build prints the seed
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(run([]() -> Result<void> {
              return std::unexpected(Error::from_errno(EADDRINUSE, "listen", "127.0.0.1:80"));
            }),
            1);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "tuza: listen 127.0.0.1:80: Address already in use\n");
}

// The thread that called run() only waits: if it were an M, a goroutine that never parks could keep run()
// from returning.
TEST(Run, RunsOnThreadsOfItsOwn) {
  const auto caller = std::this_thread::get_id();
  std::thread::id main;
  run(RunOptions{.max_procs = 1}, [&main] { main = std::this_thread::get_id(); });
  EXPECT_NE(main, caller);
}

TEST(Run, ManyRuntimesOneAfterAnother) {
  for (int i = 0; i < scaled(200); ++i) {
    run_with(1 + i % 4, [i] {
      WaitGroup group;
      std::atomic<int> ran{0};
      for (int g = 0; g < i % 20; ++g) group.go([&ran] { ++ran; });
      group.wait();
      ASSERT_EQ(ran.load(), i % 20);
    });
  }
}

TEST(Run, AbandonsGoroutinesThatWaitOrSleepOrYield) {
  for (int i = 0; i < scaled(50); ++i) {
    run(RunOptions{.max_procs = 2}, [] {
      for (int g = 0; g < 10; ++g) {
        go([] { sleep_for(1h); });
        go([] {
          for (;;) yield();
        });
      }
      sleep_for(200us);
    });
  }
}

TEST(Run, DoesNotWaitForAGoroutineLostInUserCode) {
  // The goroutine burns CPU until long after run() has returned; then its runtime no longer exists.
  static std::atomic<bool> burning, stop, came_back;
  static std::atomic<pid_t> thread;
  burning = stop = came_back = false;
  const int status = run(RunOptions{.max_procs = 2}, [] {
    go([] {
      thread = ::gettid();
      burning = true;
      while (!stop) {
      }
      yield();
      came_back = true;
    });
    while (!burning) sleep_for(100us);
    return 3;
  });
  EXPECT_EQ(status, 3);
  run_with(2, [] { yield(); });  // another runtime is not affected
  stop = true;
  while (!came_back && on_a_core(thread)) std::this_thread::yield();
  EXPECT_FALSE(came_back) << "an abandoned goroutine went on after its parking call";
}

TEST(RunDeathTest, NeverTwoAtOnce) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run([] { run([] {}); }), "tuza::run inside a goroutine");
}

// -- Rule 8.

TEST(DeadlockDeathTest, NamesEveryGoroutineItsReasonAndItsStack) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run(RunOptions{.max_procs = 2},
                  [] {
                    Mutex mutex;
                    mutex.lock();
                    go({.name = "stuck"}, [&mutex] { mutex.lock(); });
                    WaitGroup never;
                    never.add(1);
                    never.wait();
                  }),
              ::testing::ExitedWithCode(2),
              "all goroutines are asleep - deadlock!\n"
              "\ngoroutine 1 \\[sync.WaitGroup.wait, .*\\] main:\n"
              "  #0  tuza::WaitGroup::wait(.*\n)*"
              "goroutine [0-9]+ \\[sync.Mutex.lock, .*\\] stuck:\n"
              "(.*\n)*.*lock_slow(.*\n)*created by goroutine 1 in .*\n.*run_test.cpp:");
}

TEST(DeadlockDeathTest, IsFoundAfterMainHasLeftByGoexit) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run([] {
                go([] {
                  WaitGroup never;
                  never.add(1);
                  never.wait();
                });
                goexit();
              }),
              ::testing::ExitedWithCode(2), "deadlock!\n.*main goroutine has ended");
}

TEST(DeadlockDeathTest, IsFoundWhenTheLastExternalWakerGoes) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run([] {
                std::thread([promise = ExternalWaker()] {
                  while (!awake_ms_are(0)) std::this_thread::sleep_for(1ms);
                }).detach();
                WaitGroup never;
                never.add(1);
                never.wait();
              }),
              ::testing::ExitedWithCode(2), "deadlock!");
}

// The thread counts as known, as if it did not exist yet: only the promise prevents the report.
TEST(Deadlock, IsNotReportedWhileAThreadHasPromisedToWake) {
  run_with(2, [] {
    WaitGroup group;
    group.add(1);
    std::atomic<bool> hidden = false;
    std::thread outside([&, promise = ExternalWaker()] {
      const rt::KnownThread hides;
      hidden = true;
      while (!awake_ms_are(0)) std::this_thread::sleep_for(1ms);
      group.done();
    });
    while (!hidden) yield();
    group.wait();
    outside.join();
  });
}

TEST(Deadlock, IsNotReportedWhileTimersArePending) {
  run_with(1, [] {
    for (int i = 0; i < 20; ++i) sleep_for(1ms);
  });
}

// -- set_max_procs.

TEST(SetMaxProcs, ReturnsTheOldNumberAndIgnoresNonsense) {
  run_with(2, [] {
    EXPECT_EQ(max_procs(), 2);
    EXPECT_EQ(set_max_procs(4), 2);
    EXPECT_EQ(set_max_procs(0), 4);
    EXPECT_EQ(set_max_procs(-3), 4);
    EXPECT_EQ(max_procs(), 4);
    EXPECT_EQ(set_max_procs(100'000), 4);
    EXPECT_EQ(max_procs(), 256);
    set_max_procs(1);
    EXPECT_EQ(max_procs(), 1);
  });
}

TEST(SetMaxProcs, OnePMeansOneGoroutineAtATime) {
  run_with(4, [] {
    set_max_procs(1);
    // The other Ps retire when their Ms next enter the scheduler; then all goroutines run one at a time. An attempt
    // in which a P was taken from a goroutine in the middle shows nothing: the next one is shorter, as a chaos build
    // takes one in every few switches.
    int rounds = 50;
    for (int judged = 0; judged < 20;) {
      for (int i = 0; i < 100; ++i) yield();
      const SchedStats before = sched_stats();
      std::atomic<int> inside{0}, most{0};
      WaitGroup group;
      for (int g = 0; g < 20; ++g) {
        group.go([&] {
          for (int i = 0; i < rounds; ++i) {
            most = std::max(most.load(), ++inside);
            --inside;
            yield();
          }
        });
      }
      group.wait();
      if (before.lane == 0 && sched_stats().lane_arrivals == before.lane_arrivals) {
        ++judged;
        EXPECT_EQ(most.load(), 1);
      } else {
        rounds = std::max(1, rounds / 2);
      }
    }
  });
}

TEST(SetMaxProcs, LosesNothingWhenItChangesDuringWork) {
  run_with(2, [] {
    std::atomic<bool> stop{false};
    std::atomic<std::int64_t> work{0};
    WaitGroup group;
    for (int g = 0; g < 40; ++g) {
      group.go([&] {
        while (!stop) {
          ++work;
          WaitGroup inner;
          inner.go([&work] { ++work; });
          inner.wait();
          if (work.load() % 16 == 0) sleep_for(10us);
          yield();
        }
      });
    }
    for (int i = 0; i < scaled(400); ++i) {
      set_max_procs(1 + i * 7 % 9);
      sleep_for(200us);
    }
    stop = true;
    group.wait();
    set_max_procs(2);
    EXPECT_GT(work.load(), 0);
  });
}

// Some goroutines keep the remaining P busy, so it never steals. What is queued on the other P must not stay there.
TEST(SetMaxProcs, WorkOfARetiredPRunsThoughTheOthersNeverRunOutOfWork) {
  run_with(2, [] {
    for (int round = 0; round < 20; ++round) {
      set_max_procs(2);
      std::atomic<bool> chosen{false}, ran{false};
      WaitGroup group;
      for (int i = 0; i < 6; ++i) {
        group.go([&] {
          while (!ran) {
            if (!chosen && own_p() == 1 && !chosen.exchange(true)) {
              set_max_procs(1);
              group.go([&ran] { ran = true; });
            }
            yield();
          }
        });
      }
      group.wait();
    }
  });
}

// -- lock_os_thread.

std::string thread_name() {
  char name[17] = {};
  prctl(PR_GET_NAME, name);
  return name;
}

TEST(LockOsThread, TheGoroutineStaysOnItsThreadAndNobodyElseRunsThere) {
  run_with(3, [] {
    std::atomic<bool> stop{false};
    std::set<std::thread::id> locked_threads;
    Mutex mutex;
    WaitGroup group;
    std::atomic<int> trespassers{0};
    for (int g = 0; g < 3; ++g) {
      group.go([&] {
        lock_os_thread();
        lock_os_thread();
        unlock_os_thread();  // calls are counted
        const auto mine = std::this_thread::get_id();
        {
          const std::scoped_lock lock(mutex);
          locked_threads.insert(mine);
        }
        for (int i = 0; i < scaled(300); ++i) {
          yield();
          EXPECT_EQ(std::this_thread::get_id(), mine);
          if (i % 10 == 0) sleep_for(50us);
          EXPECT_EQ(std::this_thread::get_id(), mine);
        }
        {
          const std::scoped_lock lock(mutex);
          locked_threads.erase(mine);
        }
        unlock_os_thread();
      });
    }
    for (int g = 0; g < 10; ++g) {
      group.go([&] {
        while (!stop) {
          {
            const std::scoped_lock lock(mutex);
            if (locked_threads.contains(std::this_thread::get_id())) ++trespassers;
          }
          yield();
        }
      });
    }
    group.go([&] {
      sleep_for(5ms);
      stop = true;
    });
    group.wait();
    EXPECT_EQ(trespassers.load(), 0);
  });
}

TEST(LockOsThread, AThreadThatWasLockedAtTheEndIsNotReused) {
  run_with(2, [] {
    WaitGroup group;
    for (int i = 0; i < 10; ++i) {
      group.go([] {
        lock_os_thread();
        prctl(PR_SET_NAME, "spoiled");
        yield();
      });
    }
    group.wait();
    for (int i = 0; i < 200; ++i) {
      group.go([] {
        EXPECT_NE(thread_name(), "spoiled");
        yield();
      });
    }
    group.wait();
  });
}

TEST(LockOsThread, WorksWithOneP) {
  run_with(1, [] {
    WaitGroup group;
    int a = 0, b = 0;
    group.go([&] {
      lock_os_thread();
      for (int i = 0; i < scaled(500); ++i) {
        ++a;
        yield();
      }
      unlock_os_thread();
    });
    group.go([&] {
      for (int i = 0; i < scaled(500); ++i) {
        ++b;
        yield();
      }
    });
    group.wait();
    EXPECT_EQ(a, b);
  });
}

TEST(LockOsThreadDeathTest, UnlockWithoutLock) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run([] { unlock_os_thread(); }), "unlock_os_thread\\(\\) without lock_os_thread");
}

}  // namespace
}  // namespace tuza
