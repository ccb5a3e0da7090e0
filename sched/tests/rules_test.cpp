// The rules of the scheduler (docs/internals/scheduler.md), with at least one test for each. Not part of the chaos build,
// which breaks the order of goroutines on purpose.
#include <tuza/sched/arch/cpu_relax.h>
#include <tuza/sched/external.h>
#include <tuza/sched/go.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/idle/idle.h>
#include <tuza/sched/rt/idle/procs.h>
#include <tuza/sched/rt/park.h>
#include <tuza/sched/rt/queue/schedule.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/stats.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
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

// A pair that readies each other, and twenty others that queue while it runs. `turn` is called in each turn of
// the pair. Returns the number of turns that the pair has between the queueing of the others and the first of
// them, and between the first and the last.
std::pair<int, int> turns_of_a_pair_before_others(const std::function<void()>& turn) {
  constexpr int kQueuedAt = 10, kTurnsMax = 10'000;
  constexpr std::size_t kOthers = 20;
  Spot ping, pong;
  int turns = 0;
  std::vector<int> ran_at;
  const auto over = [&] { return ran_at.size() == kOthers || turns == kTurnsMax; };
  WaitGroup group;
  group.go([&] {
    while (!over()) {
      if (++turns == kQueuedAt) {
        for (std::size_t i = 0; i < kOthers; ++i) group.go([&] { ran_at.push_back(turns); });
      }
      turn();
      pong.wake();
      ping.wait();
    }
    pong.wake();
  });
  group.go([&] {
    while (!over()) {
      pong.wait();
      turn();
      ping.wake();
    }
  });
  group.wait();
  return {2 * (ran_at.front() - kQueuedAt), 2 * (ran_at.back() - ran_at.front())};
}

TEST_F(Rule1, APairThatReadiesEachOtherLetsTheQueueRunAfter61Picks) {
  run_with(1, [] {
    const auto [first, all] = turns_of_a_pair_before_others([] {});
    EXPECT_LE(first, 61);
    EXPECT_EQ(all, 0);
  });
}

TEST_F(Rule1, APairThatReadiesEachOtherSharesOneSlice) {
  run_with(1, [] {
    rt::Sched& sched = *rt::active();
    // The scheduler's clock says that each turn takes a slice; sysmon sets it right now and then.
    const auto [first, all] = turns_of_a_pair_before_others([&] { sched.coarse_ns += sched.slice.slice_ns; });
    EXPECT_LE(first, 10);
    EXPECT_EQ(all, 0);
  });
}

// The goroutines of a queue, which stays as it is.
std::vector<std::uint64_t> ids_in(rt::GlobalQueue& queue) {
  std::vector<rt::G*> all;
  std::array<rt::G*, 64> batch{};
  while (const std::uint32_t n = queue.pop_batch(1, batch))
    all.insert(all.end(), batch.begin(), batch.begin() + n);
  queue.push(all);
  std::vector<std::uint64_t> ids(all.size());
  std::transform(all.begin(), all.end(), ids.begin(), [](const rt::G* g) { return g->id.get(); });
  return ids;
}

TEST_F(Rule2, AFullLocalQueueMovesHalfAndTheNewOneToTheGlobalQueueShuffled) {
  run_with(1, [] {
    constexpr std::uint32_t kCapacity = rt::kLocalQueueCapacity;
    std::vector<std::uint64_t> ids;  // in the order of their start
    WaitGroup group;
    const auto spawn = [&] {
      group.go([] {});
      ids.push_back(current_p().runnext.load()->id.get());
    };
    for (std::uint32_t i = 0; i <= kCapacity; ++i) spawn();
    EXPECT_EQ(current_p().queue.size(), kCapacity);
    EXPECT_EQ(rt::active()->grq.size(), 0u);
    spawn();  // displaces the one in runnext, which finds no room
    EXPECT_EQ(current_p().queue.size(), kCapacity / 2);
    EXPECT_EQ(rt::active()->grq.size(), kCapacity / 2 + 1);
    // The older half and the goroutine from runnext went to the GRQ.
    std::vector<std::uint64_t> expected;
    for (std::uint32_t i = 0; i < kCapacity / 2; ++i) expected.push_back(ids[i]);
    expected.push_back(ids[kCapacity]);
    std::vector<std::uint64_t> moved = ids_in(rt::active()->grq[rt::Level::kNew]);
    int neighbours = 0;  // that still follow each other; in a random order, one on average
    for (std::size_t i = 1; i < moved.size(); ++i) neighbours += moved[i] == moved[i - 1] + 1 ? 1 : 0;
    EXPECT_LE(neighbours, 10);
    std::sort(moved.begin(), moved.end());
    EXPECT_EQ(moved, expected);
    group.wait();
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
    EXPECT_LE(picks, 61u);
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

// All Ps but the caller's, out of use: neither idle nor held. At the end of its life they are idle again, and an
// M is woken to search for work.
class OtherPs {
 public:
  OtherPs() {
    while (ps_.size() + 1 < static_cast<std::size_t>(sched_.procs())) {
      for (std::int32_t id = 0; id < sched_.procs(); ++id) {
        if (sched_.idle_ps.take(id)) ps_.push_back(&sched_.p(id));
      }
      rt::cpu_relax();  // an M that searches for work has one
    }
  }
  ~OtherPs() {
    for (rt::P* p : ps_) rt::put_idle(sched_, p);
    rt::wake_one(sched_);
  }
  OtherPs(const OtherPs&) = delete;
  OtherPs& operator=(const OtherPs&) = delete;

  rt::P& operator[](std::size_t i) { return *ps_[i % ps_.size()]; }
  [[nodiscard]] std::size_t size() const { return ps_.size(); }

 private:
  rt::Sched& sched_ = *rt::active();
  std::vector<rt::P*> ps_;
};

TEST_F(Rule3, AnIdlePStealsHalfOfTheWorkOfABusyOne) {
  run_with(2, [] {
    rt::P& here = current_p();
    std::uint32_t left = 0, taken = 0;
    std::atomic<bool> counted{false};
    WaitGroup group;
    {
      const OtherPs others;
      for (int i = 0; i < 100; ++i) {
        group.go([&] {
          if (counted) return;
          left = here.queue.size();
          taken = 1 + current_p().queue.size();
          counted = true;
        });
      }
      EXPECT_EQ(here.queue.size(), 99u);  // and one is in runnext
    }
    while (!counted) rt::cpu_relax();  // this goroutine keeps its P: the other one must take the first
    EXPECT_EQ(taken, 50u);
    EXPECT_EQ(left, 49u);
    group.wait();
  });
}

// Steals once for the M of the caller, which must not have anything queued.
rt::G* steal_once(const rt::Enter& rt) {
  rt::G* g = rt::steal(rt.m());
  while (rt::RunQueue::Owner(rt.p()->queue).pop() != nullptr) {
  }
  rt::stop_spinning(rt.m());
  return g;
}

TEST_F(Rule3, QueuedWorkIsStolenBeforeThatInRunnext) {
  run_with(4, [] {
    OtherPs victims;
    rt::G queued;
    std::array<rt::G, 2> next;
    bool right = true;
    for (std::size_t i = 0; i < 200 && right; ++i) {
      const rt::Enter rt;
      victims[i].runnext = &next[0];
      victims[i + 1].runnext = &next[1];
      EXPECT_TRUE(rt::RunQueue::Owner(victims[i + 2].queue).push(&queued));
      std::array<const rt::G*, 4> taken{};
      for (const rt::G*& g : taken) g = steal_once(rt);
      right =
          taken[0] == &queued && taken[3] == nullptr &&
          ((taken[1] == &next[0] && taken[2] == &next[1]) || (taken[1] == &next[1] && taken[2] == &next[0]));
    }
    EXPECT_TRUE(right);
  });
}

TEST_F(Rule3, EachVictimComesFirstAtTimes) {
  run_with(4, [] {
    OtherPs victims;
    std::array<rt::G, 3> gs;
    std::array<int, 3> first{};
    for (int i = 0; i < 600; ++i) {
      const rt::Enter rt;
      for (std::size_t v = 0; v < gs.size(); ++v) {
        EXPECT_TRUE(rt::RunQueue::Owner(victims[v].queue).push(&gs[v]));
      }
      const rt::G* taken = steal_once(rt);
      for (std::size_t v = 0; v < gs.size(); ++v) first[v] += taken == &gs[v] ? 1 : 0;
      while (steal_once(rt) != nullptr) {
      }
    }
    for (const int times : first) EXPECT_GE(times, 100);  // of 200, were it exactly even
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

TEST_F(Rule5, AtMostHalfAsManySpinAsPsAreBusy) {
  run_with(8, [] {
    rt::Sched& sched = *rt::active();
    OtherPs others;
    const std::uint32_t already = sched.spinning;
    EXPECT_EQ(already, 0u);
    std::vector<std::unique_ptr<rt::M>> ms;
    for (std::uint32_t i = 0; i < 16; ++i) {
      ms.push_back(std::make_unique<rt::M>(1000 + i, 1));
      ms.back()->sched = &sched;
    }
    // Rounded up: one at least.
    for (int idle = 0; idle < 8; ++idle) {
      const rt::Enter rt;
      for (int i = 0; i < idle; ++i) sched.idle_ps.put(others[static_cast<std::size_t>(i)].id);
      int spin = 0;
      for (const auto& m : ms) spin += rt::try_spinning(m.get()) ? 1 : 0;
      EXPECT_EQ(spin, (8 - idle + 1) / 2) << 8 - idle << " busy Ps";
      for (const auto& m : ms) sched.spinning -= std::exchange(m->spinning, false) ? 1 : 0;
      for (int i = 0; i < idle; ++i) {
        EXPECT_TRUE(sched.idle_ps.take(others[static_cast<std::size_t>(i)].id));
      }
    }
  });
}

TEST_F(Rule5, NoMoreThanHalfAsManySpinAsThereArePsWhateverHappens) {
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

// How many of a hundred times the start of goroutines wakes an M. The P believes that goroutines run for `each`; the other M
// sleeps. Sysmon, which wakes an M when it finds work queued, may come in between.
int wake_ups_for(int goroutines, std::chrono::nanoseconds each) {
  rt::Sched& sched = *rt::active();
  int woken = 0;
  for (int i = 0; i < 100; ++i) {
    while (sched.idle_ps.count() == 0 || sched.idle_ms.size() == 0 || sched.spinning != 0) rt::cpu_relax();
    WaitGroup group;
    current_p().average_run_ns = each.count();
    const std::uint64_t before = sched.wakeups;
    for (int k = 0; k < goroutines; ++k) group.go([] {});
    woken += sched.wakeups != before ? 1 : 0;
    group.wait();
  }
  return woken;
}

// Keeps its P until another M has run a goroutine of its queue.
void make_another_m() {
  std::atomic<bool> ran{false};
  WaitGroup group;
  group.go([&ran] { ran = true; });
  while (!ran) rt::cpu_relax();
  group.wait();
}

TEST_F(Rule6, AnMIsWokenForLongWorkOnly) {
  run_with(2, [] {
    make_another_m();
    EXPECT_LT(wake_ups_for(1, 40us), 50) << "it runs next";
    EXPECT_LT(wake_ups_for(4, 1us), 50) << "three of them wait";
    EXPECT_GT(wake_ups_for(2, 1ms), 50);
    EXPECT_GT(wake_ups_for(21, 5us), 50) << "short ones, but many";
  });
}

TEST_F(Rule6, LongWorkBehindALongGoroutineIsTakenByAnIdleP) { run_with(2, &make_another_m); }

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
