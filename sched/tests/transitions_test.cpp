// Each path of a goroutine that loses its P, and the order in which waiting goroutines get one. Not part of
// the chaos build, where Ps are lost and orders broken at random.
//
// The slices here are so long that sysmon takes no P: a goroutine gives its P away with a long BlockingCall.
#include <tuza/sched/arch/current_m.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/external.h>
#include <tuza/sched/go.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/queue/schedule.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/slice/preempt_signal.h>
#include <tuza/sched/sync/semaphore.h>
#include <tuza/sched/tests/hogs.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using namespace testing;

class TransitionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("TUZA_SLICE_MS", "10000", 1);
    setenv("TUZA_EARLY_HANDOFF_US", "0", 1);
  }
  void TearDown() override {
    for (const char* name : {"TUZA_SLICE_MS", "TUZA_EARLY_HANDOFF_US", "TUZA_DEBUG"}) unsetenv(name);
  }
};

// The number of the caller's P; -1 without one.
int current_p_id() {
  const rt::Enter rt;
  return rt.p() != nullptr ? rt.p()->id : -1;
}
rt::G& current_goroutine() { return *rt::current_m()->current; }
std::uint32_t queued(rt::Level level) { return rt::active()->grq[level].size(); }

// Uses enough CPU to count as a hog.
void be_a_hog() {
  const std::int64_t begin = own_cpu_ns();
  while (own_cpu_ns() - begin < 15'000'000) compute(1);
}
int idle_ps() { return sched_stats().procs_idle; }

void spin_until(const std::atomic<bool>& flag) {
  while (!flag) compute(1, 10);
}

// -- From running without a P to running with one.

TEST_F(TransitionsTest, AfterACallItTakesItsOldPIfThatIsIdle) {
  run_with(4, [] {
    for (int i = 0; i < 100; ++i) {
      yield();
      const int before = current_p_id();
      {
        const BlockingCall call(CallLength::kLong);
        EXPECT_EQ(current_p_id(), -1);
        EXPECT_EQ(current_goroutine().status, rt::GStatus::kRunning);
        EXPECT_NE(rt::current_m()->taken & rt::taken::kGone, 0u);
      }
      EXPECT_EQ(current_p_id(), before);
      EXPECT_EQ(rt::current_m()->taken & rt::taken::kGone, 0u);
    }
  });
}

TEST_F(TransitionsTest, AnIdlePIfTheOldOneIsBusy) {
  run_with(2, [] {
    std::atomic<int> its_p = -1;
    std::atomic<bool> stop = false;
    WaitGroup group;
    yield_until([] { return idle_ps() == 1; });
    group.go([&] {
      its_p = current_p_id();
      spin_until(stop);
    });
    {
      const BlockingCall call(CallLength::kLong);  // the P goes to the goroutine that is queued there
      while (its_p < 0) ::usleep(100);
    }
    EXPECT_NE(current_p_id(), -1);
    EXPECT_NE(current_p_id(), its_p);
    stop = true;
    group.wait();
  });
}

// The order in which these goroutines end when all are queued: one that has lost its P and, if `hog`,
// computed for long (r), and two new ones (n).
std::string order_after_losing_the_p(bool hog) {
  std::string order;
  run_with(1, [&order, hog] {
    const rt::Level level = hog ? rt::Level::kReturned : rt::Level::kWoken;
    std::atomic<bool> called = false, end_of_call = false;
    WaitGroup group;
    rt::G* caller = nullptr;
    group.go([&] {
      caller = &current_goroutine();
      {
        const BlockingCall call(CallLength::kLong);
        called = true;
        while (!end_of_call) ::usleep(1000);
        if (hog) be_a_hog();
      }
      order += 'r';
    });
    yield_until([&called] { return called.load(); });
    const auto picks = [] { return rt::active()->p(0).picks.get(); };
    while (picks() % rt::kHousekeepingPicks > 10) yield();  // housekeeping has an order of its own
    end_of_call = true;
    while (queued(level) == 0) compute(1, 10);  // keeps the only P
    EXPECT_EQ(caller->status, rt::GStatus::kRunnable);
    group.go([&order] { order += 'n'; });
    std::thread([&] { group.go([&order] { order += 'n'; }); }).join();
    group.wait();
  });
  return order;
}

TEST_F(TransitionsTest, IfAllPsAreBusyAHogQueuesBehindWokenAndNewGoroutines) {
  EXPECT_EQ(order_after_losing_the_p(true), "nnr");
}

TEST_F(TransitionsTest, AShortRunWithoutAPQueuesAsWoken) {
  EXPECT_NE(order_after_losing_the_p(false).back(), 'r');
}

// Otherwise goroutines that never wait would stay ahead of the woken ones for ever.
TEST_F(TransitionsTest, ButOnlyOnceForAsLongAsItHasNotWaited) {
  run_with(1, [] {
    std::atomic<int> called = 0, ended = 0;
    WaitGroup group;
    group.go([&] {
      for (int i = 1; i <= 4; ++i) {
        if (i == 4) sleep_for(5ms);
        const BlockingCall call(CallLength::kLong);
        called = i;
        ended.wait(i - 1);  // uses no CPU time, however long it takes: what has used some queues elsewhere
      }
    });
    using enum rt::Level;
    for (const rt::Level level : {kWoken, kReturned, kReturned, kWoken}) {
      yield_until([&] { return called == ended + 1; });
      ++ended;
      ended.notify_one();
      while (queued(kWoken) + queued(kReturned) == 0) compute(1, 10);  // keeps the only P
      EXPECT_EQ(queued(level), 1u) << "call " << ended;
    }
    group.wait();
  });
}

TEST_F(TransitionsTest, OneThatParksInsideACallComesBackWithAP) {
  run_with(2, [] {
    const BlockingCall call(CallLength::kLong);
    EXPECT_EQ(current_p_id(), -1);
    sleep_for(1ms);
    EXPECT_NE(current_p_id(), -1);
    const BlockingCall inner(CallLength::kLong);  // only the outermost counts
    EXPECT_NE(current_p_id(), -1);
  });
}

TEST_F(TransitionsTest, AHogThatHasLostItsPTakesOneAtItsNextParkingCall) {
  unsetenv("TUZA_SLICE_MS");
  run_with(2, [] {
    const std::atomic<std::uint32_t>& taken = rt::current_m()->taken;
    while ((taken & rt::taken::kGone) == 0) compute(1, 100);
    while (idle_ps() < 2) compute(1, 100);  // nothing else runs: the next event finds a P at once
    yield();
    EXPECT_NE(current_p_id(), -1);
  });
}

TEST_F(TransitionsTest, ASuspendedOneIsStillRunningAndResumesWithoutAP) {
  unsetenv("TUZA_SLICE_MS");
  run_with(1, [] {
    std::atomic<const rt::M*> m = nullptr;
    std::atomic<std::uint64_t> rounds = 0;
    Hogs hogs(4, [&](int i) {
      compute(1);
      if (i != 0) return;
      m = rt::current_m();
      ++rounds;
    });
    const auto state = [&m] { return static_cast<rt::Suspend>(m.load()->suspend.load()); };
    wait_for([&] { return m != nullptr; });
    const rt::G* g = m.load()->current;
    for (int i = 0; i < 3; ++i) {
      wait_for([&] { return state() == rt::Suspend::kStopped; });
      EXPECT_EQ(g->status, rt::GStatus::kRunning);
      EXPECT_EQ(m.load()->current.get(), g);
      EXPECT_NE(m.load()->taken & rt::taken::kGone, 0u);
      const std::uint64_t before = rounds;
      wait_for([&] { return rounds > before + 1; });
      EXPECT_NE(m.load()->taken & rt::taken::kGone, 0u) << "a turn is no P";
    }
  });
}

// -- What a goroutine without a P may do.

TEST_F(TransitionsTest, WithoutAPItMaySpawnWakeAndEnd) {
  run_with(2, [] {
    for (int i = 0; i < 50; ++i) {
      Semaphore woken(0);
      WaitGroup group;
      std::atomic<int> ran = 0;
      group.go([&] {
        woken.acquire();
        ++ran;
      });
      group.go([&] {
        const BlockingCall call(CallLength::kLong);
        group.go([&ran] { ++ran; });
        woken.release();
        EXPECT_EQ(current_p_id(), -1);
        ++ran;
        if (i % 2 == 0) goexit();
      });
      group.wait();
      EXPECT_EQ(ran, 3);
    }
    wait_for([] { return sched_stats().lane == 0; });
  });
}

TEST_F(TransitionsTest, OneThatEndsWithoutAPLeavesTheLane) {
  unsetenv("TUZA_SLICE_MS");
  run_with(1, [] {
    for (int i = 0; i < 5; ++i) {
      std::atomic<bool> lost = false;
      go([&lost] {
        const std::atomic<std::uint32_t>& taken = rt::current_m()->taken;
        while ((taken & rt::taken::kGone) == 0) compute(1, 100);
        lost = true;
      });
      wait_for([&lost] { return lost && num_goroutine() == 1 && sched_stats().lane == 0; });
    }
    EXPECT_GE(rt::active()->exited_outside.load(), 5u);
  });
}

TEST_F(TransitionsTest, ALockedOneKeepsItsThreadThroughACall) {
  run_with(1, [] {
    WaitGroup group;
    std::atomic<bool> stop = false;
    group.go([&stop] {
      while (!stop) yield();
    });
    lock_os_thread();
    const rt::M* m = rt::current_m();
    for (int i = 0; i < 20; ++i) {
      {
        const BlockingCall call(CallLength::kLong);
        ::usleep(100);
      }
      EXPECT_EQ(rt::current_m(), m);
      EXPECT_EQ(current_p_id(), 0);
      yield();
    }
    unlock_os_thread();
    stop = true;
    group.wait();
  });
}

// The locked goroutine queues for a P just as the last busy P becomes idle; its thread waits for that
// goroutine alone.
TEST_F(TransitionsTest, ALockedOneLeavesTheQueueWhenThePBecomesIdle) {
  run_with(1, [] {
    constexpr int kRounds = scaled(30'000);
    Semaphore begin(0), done(0);
    WaitGroup group;
    group.go([&] {
      lock_os_thread();
      for (int i = 0; i < kRounds; ++i) {
        begin.acquire();
        {
          const BlockingCall call(CallLength::kLong);
          compute(1, 1000);
        }
        done.release();
      }
    });
    for (int i = 0; i < kRounds; ++i) {
      begin.release();
      yield();
      compute(1, i % 2000);
      done.acquire();
    }
    group.wait();
  });
}

// -- Order of the levels.

TEST_F(TransitionsTest, WokenGoroutinesPrecedeNewOnesExceptEveryEighthPick) {
  run_with(1, [] {
    constexpr int kEach = 40;
    std::string order;
    Semaphore woken(0);
    WaitGroup group;
    for (int i = 0; i < kEach; ++i) {
      group.go([&] {
        woken.acquire();
        order += 'w';
      });
    }
    yield_until([] { return rt::active()->p(0).queued() == 0; });
    for (int i = 0; i < kEach; ++i) group.go([&order] { order += 'n'; });
    std::thread([&woken] {
      for (int i = 0; i < kEach; ++i) woken.release();
    }).join();
    group.wait();
    const auto early = std::count(order.begin(), order.begin() + kEach, 'n');
    EXPECT_LE(early, kEach / 8 + 3) << order;  // also the one in runnext, and housekeeping
    EXPECT_GE(early, kEach / 8 - 1) << order;
  });
}

TEST_F(TransitionsTest, OneThatReturnsDoesNotStarveThoughNewOnesAreNeverLacking) {
  run_with(1, [] {
    std::atomic<bool> called = false, end_of_call = false;
    bool back = false;
    std::uint64_t queued_at = 0, back_at = 0;
    const auto picks = [] { return rt::active()->p(0).picks.get(); };
    WaitGroup group;
    group.go([&] {
      {
        const BlockingCall call(CallLength::kLong);
        called = true;
        while (!end_of_call) ::usleep(100);
        be_a_hog();
      }
      back_at = picks();
      back = true;
    });
    yield_until([&called] { return called.load(); });
    for (int i = 0; i < 600; ++i) {  // more than a local queue holds
      group.go([&] {
        while (!back) yield();
      });
    }
    end_of_call = true;
    while (queued(rt::Level::kReturned) == 0) compute(1, 10);
    queued_at = picks();
    group.wait();
    EXPECT_LE(back_at - queued_at, 2 * rt::kHousekeepingPicks);
    EXPECT_GE(back_at - queued_at, 1u);
  });
}

// -- Deadlocks.

class TransitionsDeathTest : public TransitionsTest {
 protected:
  void SetUp() override {
    TransitionsTest::SetUp();
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

TEST_F(TransitionsTest, WaitingForABlockingCallIsNoDeadlock) {
  run_with(2, [] {
    for (const CallLength length : {CallLength::kUnknown, CallLength::kLong}) {
      Semaphore done(0);
      go([&] {
        blocking(length, [] {
          while (!awake_ms_are(1)) ::usleep(1000);
        });
        done.release();
      });
      done.acquire();
      go([&] {
        blocking(length, [&done] {
          while (!awake_ms_are(1)) ::usleep(1000);
          done.release();
        });
      });
      done.acquire();
    }
  });
}

TEST_F(TransitionsDeathTest, ADeadlockIsReportedWhenTheCallIsOver) {
  EXPECT_EXIT(run(RunOptions{.max_procs = 2},
                  [] {
                    Semaphore never(0);
                    go([&never] {
                      blocking(CallLength::kLong, [] {
                        while (!awake_ms_are(1)) ::usleep(1000);
                      });
                      never.acquire();
                    });
                    never.acquire();
                  }),
              ::testing::ExitedWithCode(2), "all goroutines are asleep - deadlock!");
}

// -- TUZA_DEBUG=stalls.

TUZA_NOIPA void stay_away(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) compute(1);
}

int count_of(const std::string& text, const std::string& part) {
  int n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++n;
  return n;
}

TEST_F(TransitionsTest, AStallIsReportedOnceWithNameDurationAndPlace) {
  unsetenv("TUZA_SLICE_MS");
  setenv("TUZA_DEBUG", "stalls=20ms", 1);
  ::testing::internal::CaptureStderr();
  run_with(2, [] {
    WaitGroup group;
    group.go([] {
      set_goroutine_name("offender");
      stay_away(1s);
    });
    group.go([] {
      set_goroutine_name("caller");
      blocking([] { ::usleep(200'000); });
    });
    group.wait();
  });
  const std::string printed = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(count_of(printed, "(offender) has not returned to the scheduler for "), 1) << printed;
  EXPECT_EQ(count_of(printed, "(caller)"), 0) << printed;
  EXPECT_GE(count_of(printed, "stay_away"), 1) << printed;
  // ThreadSanitizer calls handlers later, with no signal's frame on the stack.
  EXPECT_EQ(count_of(printed, "StallReport"), rt::kTsan ? 1 : 0) << "frames of the handler: " << printed;
  EXPECT_GE(count_of(printed, "created by goroutine "), 1) << printed;
}

}  // namespace
}  // namespace tuza
