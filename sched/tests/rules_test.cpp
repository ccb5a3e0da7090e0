// The rules of the scheduler (docs/internals/scheduler.md), with at least one test for each. Not part of the chaos build,
// which breaks the order of goroutines on purpose.
#include <tuza/sched/arch/cpu_relax.h>
#include <tuza/sched/external.h>
#include <tuza/sched/go.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/park.h>
#include <tuza/sched/rt/queue/schedule.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/stats.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

namespace tuza {
namespace {

using testing::run_with;

class RuleTest : public ::testing::Test {
 private:
  const testing::LongSlices long_slices_;
};
class Rule1 : public RuleTest {};
class Rule2 : public RuleTest {};
class Rule3 : public RuleTest {};
class Rule5 : public RuleTest {};
class Rule6 : public RuleTest {};

rt::P& current_p() { return *rt::Enter().p(); }

// A place where one goroutine waits until another calls wake().
class Spot {
 public:
  void wait() {
    rt::park(
        [](rt::G* g, void* self) {
          auto& spot = *static_cast<Spot*>(self);
          const std::scoped_lock lock(spot.mutex_);
          if (spot.woken_) {
            spot.woken_ = false;
            return false;
          }
          spot.waiter_ = g;
          return true;
        },
        this, WaitReason::kTest);
  }
  void wake() {
    rt::G* g = nullptr;
    {
      const std::scoped_lock lock(mutex_);
      g = std::exchange(waiter_, nullptr);
      woken_ = g == nullptr;
    }
    if (g != nullptr) rt::ready(g);
  }

 private:
  rt::RawMutex mutex_;
  rt::G* waiter_ = nullptr;
  bool woken_ = false;
};

TEST_F(Rule1, TheLastSpawnedRunsFirstAndTheOthersInOrder) {
  run_with(1, [] {
    std::string order;
    yield();  // begins a slice
    WaitGroup group;
    for (const char name : {'a', 'b', 'c', 'd'}) group.go([&order, name] { order.push_back(name); });
    group.wait();
    EXPECT_EQ(order, "dabc");
  });
}

TEST_F(Rule1, APairThatReadiesEachOtherDoesNotStarveTheQueue) {
  run_with(1, [] {
    Spot ping, pong;
    bool stop = false;
    std::vector<int> others;
    WaitGroup group;
    // All of these wait behind the pair, in the LRQ.
    for (int i = 0; i < 20; ++i) {
      group.go([&, i] {
        others.push_back(i);
        stop = others.size() == 20;
      });
    }
    group.go([&] {
      while (!stop) {
        pong.wake();
        ping.wait();
      }
      pong.wake();
    });
    group.go([&] {
      while (!stop) {
        ping.wake();
        pong.wait();
      }
      ping.wake();
    });
    group.wait();  // would never return if the pair could go on in runnext
    EXPECT_EQ(others.size(), 20u);
  });
}

TEST_F(Rule2, AFullLocalQueueMovesHalfAndTheNewOneToTheGlobalQueueShuffled) {
  run_with(1, [] {
    constexpr std::uint32_t kCapacity = rt::kLocalQueueCapacity;
    std::vector<std::uint32_t> order;
    WaitGroup group;
    const auto spawn = [&](std::uint32_t i) { group.go([&order, i] { order.push_back(i); }); };
    for (std::uint32_t i = 0; i <= kCapacity; ++i) spawn(i);
    EXPECT_EQ(current_p().queue.size(), kCapacity);
    EXPECT_EQ(rt::active()->grq.size(), 0u);
    spawn(kCapacity + 1);  // displaces the one in runnext, which finds no room
    EXPECT_EQ(current_p().queue.size(), kCapacity / 2);
    EXPECT_EQ(rt::active()->grq.size(), kCapacity / 2 + 1);
    group.wait();
    ASSERT_EQ(order.size(), kCapacity + 2);
    // The older half and the goroutine from runnext went to the GRQ. They must come back shuffled.
    std::vector<std::uint32_t> moved;
    std::copy_if(order.begin(), order.end(), std::back_inserter(moved),
                 [](std::uint32_t i) { return i < kCapacity / 2 || i == kCapacity; });
    EXPECT_EQ(moved.size(), kCapacity / 2 + 1);
    EXPECT_FALSE(std::is_sorted(moved.begin(), moved.end()));
    std::sort(order.begin(), order.end());
    for (std::uint32_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], i);
  });
}

TEST_F(Rule2, EarlierWakeUpsAreNotOvertakenByALaterBatchThoughMostFindNoRoom) {
  run_with(1, [] {
    constexpr std::uint32_t kFirst = 2 * rt::kLocalQueueCapacity, kLater = 10;
    std::vector<std::size_t> order;  // in which they run, by the order in which they are woken
    std::vector<rt::G*> waiting;
    WaitGroup group;
    for (std::uint32_t i = 0; i < kFirst + kLater; ++i) {
      group.go([&order, &waiting] {
        const std::size_t number = waiting.size();
        rt::park(
            [](rt::G* g, void* list) {
              static_cast<std::vector<rt::G*>*>(list)->push_back(g);
              return true;
            },
            &waiting, WaitReason::kTest);
        order.push_back(number);
      });
    }
    while (waiting.size() < kFirst + kLater) yield();
    rt::GList first, later;
    for (std::uint32_t i = 0; i < waiting.size(); ++i) {
      waiting[i]->win();
      (i < kFirst ? first : later).push_back(waiting[i]);
    }
    rt::ready(std::move(first));
    EXPECT_EQ(current_p().woken.size(), rt::kLocalQueueCapacity);
    rt::ready(std::move(later));
    EXPECT_EQ(rt::active()->grq[rt::Level::kWoken].size(), kFirst - rt::kLocalQueueCapacity + kLater);
    group.wait();
    ASSERT_EQ(order.size(), kFirst + kLater);
    // Every 61st pick takes a batch from the GRQ, and runs one goroutine of it at once.
    const auto later_one =
        std::find_if(order.begin(), order.end(), [](std::size_t i) { return i >= kFirst; });
    EXPECT_GE(later_one - order.begin(), kFirst - rt::kLocalQueueCapacity / 2);
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], i);
  });
}

TEST_F(Rule3, TheGlobalQueueGetsEvery61stPickThoughTheLocalOneNeverRunsEmpty) {
  run_with(1, [] {
    bool injected_ran = false;
    std::uint32_t picks = 0;
    std::thread([&injected_ran] { go([&injected_ran] { injected_ran = true; }); }).join();
    EXPECT_EQ(rt::active()->grq.size(), 1u);
    WaitGroup group;
    for (int i = 0; i < 3; ++i) {
      group.go([&] {
        while (!injected_ran) {
          ++picks;
          yield();
        }
      });
    }
    group.wait();
    EXPECT_LE(picks, 2 * rt::kHousekeepingPicks);
  });
}

TEST_F(Rule3, LocalWorkGoesBeforeGlobalWork) {
  run_with(1, [] {
    std::vector<char> order;
    WaitGroup group;
    group.add(1);
    std::thread([&] {
      go([&] {
        order.push_back('g');
        group.done();
      });
    }).join();
    while (current_p().picks.get() % rt::kHousekeepingPicks > 10) yield();  // far from housekeeping
    group.go([&order] { order.push_back('l'); });
    group.wait();
    EXPECT_EQ(std::string(order.begin(), order.end()), "lg");
  });
}

TEST_F(Rule3, AnIdlePStealsHalfOfTheWorkOfABusyOne) {
  run_with(2, [] {
    // All are spawned here, and none ends before one has run elsewhere: the other P must come and steal.
    const rt::M* here = rt::current_m();
    std::atomic<bool> elsewhere{false};
    WaitGroup group;
    for (int i = 0; i < 100; ++i) {
      group.go([&] {
        while (!elsewhere) {
          if (rt::current_m() != here) elsewhere = true;
          yield();
        }
      });
    }
    group.wait();
    EXPECT_TRUE(elsewhere);
  });
}

TEST_F(Rule3, TimersOfABusyPAreRunByOthers) {
  run_with(2, [] {
    // The sleeper arms its timer on this P; after that this goroutine never enters the scheduler.
    std::atomic<bool> armed{false}, woke{false};
    WaitGroup group;
    group.go([&] {
      armed = true;
      sleep_for(std::chrono::milliseconds(5));
      woke = true;
    });
    while (!armed) yield();
    while (!woke) rt::cpu_relax();
    group.wait();
  });
}

TEST_F(Rule5, AtMostHalfAsManySpinAsThereArePs) {
  run_with(4, [] {
    std::atomic<bool> stop{false};
    std::atomic<std::uint32_t> most{0};
    std::thread watcher([&] {
      while (!stop) most = std::max(most.load(), rt::active()->spinning.load());
    });
    for (int round = 0; round < testing::scaled(300); ++round) {
      WaitGroup group;
      for (int i = 0; i < 50; ++i) group.go([] { yield(); });
      group.wait();
    }
    stop = true;
    watcher.join();
    EXPECT_LE(most.load(), 2u);
  });
}

TEST_F(Rule5, WorkFromOutsideNeverWaitsForAnIdleP) {
  run_with(2, [] {
    // Each submission may meet an M at any point of its way to sleep.
    std::atomic<int> ran{0};
    std::thread outside([&ran, promise = ExternalWaker()] {
      for (int i = 0; i < testing::scaled(20'000); ++i) {
        go([&ran] { ++ran; });
        while (ran.load() != i + 1) std::this_thread::yield();
      }
    });
    while (ran.load() != testing::scaled(20'000)) sleep_for(std::chrono::microseconds(100));
    outside.join();
  });
}

TEST_F(Rule6, AnAlternatingPairWakesNoM) {
  run_with(2, [] {
    constexpr int kRounds = 20'000;
    Spot ping, pong;
    WaitGroup group;
    const std::uint64_t before = rt::active()->wakeups.load();
    const std::int64_t began_ns = rt::now_ns();
    group.go([&] {
      for (int i = 0; i < kRounds; ++i) {
        pong.wake();
        ping.wait();
      }
    });
    group.go([&] {
      for (int i = 0; i < kRounds; ++i) {
        pong.wait();
        ping.wake();
      }
    });
    group.wait();
    // Some wake-ups are expected: until the P has learned that its goroutines are short, again after its
    // thread had to wait long for a core, and when sysmon scans. Where a turn takes more than 50 us, as on a
    // busy machine in a sanitizer build, a wake-up pays off, and the rule requires it.
    const bool turns_were_short = rt::now_ns() - began_ns < std::int64_t{2 * kRounds} * 25'000;
    if (turns_were_short) {
      EXPECT_LT(rt::active()->wakeups.load() - before, kRounds / 20);
    }
  });
}

TEST_F(Rule6, LongWorkBehindALongGoroutineIsTakenByAnIdleP) {
  run_with(2, [] {
    std::atomic<bool> ran{false};
    WaitGroup group;
    group.go([&ran] { ran = true; });
    while (!ran) rt::cpu_relax();  // this goroutine keeps its P: another M must run it
    group.wait();
  });
}

TEST_F(Rule2, StatisticsSayWhatIsQueuedAndWhere) {
  run_with(1, [] {
    constexpr std::uint32_t kQueued = 300;
    WaitGroup group;
    for (std::uint32_t i = 0; i < kQueued; ++i) group.go([] {});
    // No other thread has a P, so they are where they were put: in runnext, the LRQ and, by rule 2, the GRQ.
    const SchedStats stats = sched_stats();
    const std::vector<ProcStats> procs = proc_stats();
    ASSERT_EQ(procs.size(), 1u);
    EXPECT_TRUE(procs[0].has_next);
    EXPECT_EQ(procs[0].woken, 0u);
    EXPECT_EQ(procs[0].queued + 1, stats.local_queues);
    EXPECT_GT(stats.global_queue[1], 0u);
    EXPECT_EQ(stats.local_queues + stats.global_queue[0] + stats.global_queue[1] + stats.global_queue[2],
              kQueued);
    group.wait();
  });
}

}  // namespace
}  // namespace tuza
