// What the runtime reports of itself while it runs.
#include <tuza/sched/stats.h>

#include <tuza/sched/blocking.h>
#include <tuza/sched/go.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/tests/hogs.h>

#include <algorithm>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using namespace testing;

class StatsTest : public testing::WithProcs {};
TUZA_WITH_PROCS(StatsTest);

TEST(Stats, AreZeroWithoutARuntime) {
  const SchedStats stats = sched_stats();
  EXPECT_EQ(stats.max_procs, 0);
  EXPECT_EQ(stats.threads, 0u);
  EXPECT_EQ(stats.goroutines, 0u);
  EXPECT_TRUE(proc_stats().empty());
  EXPECT_TRUE(machine_stats().empty());
  EXPECT_EQ(count_goroutines().running, 0u);
}

TEST_P(StatsTest, CountGoroutinesByWhatTheyDo) {
  run_with(GetParam(), [] {
    constexpr std::size_t kReceivers = 300, kLockers = 50, kAll = kReceivers + kLockers;
    Chan<int> nothing(0);
    Mutex mutex;
    WaitGroup group;
    const SchedStats before = sched_stats();
    mutex.lock();
    for (std::size_t i = 0; i < kReceivers; ++i) group.go([&nothing] { (void)nothing.recv(); });
    for (std::size_t i = 0; i < kLockers; ++i) group.go([&mutex] { const std::scoped_lock lock(mutex); });
    wait_for([] {
      const GoroutineCounts counts = count_goroutines();
      return counts.waiting_for[static_cast<std::size_t>(WaitReason::kChanReceive)] == kReceivers &&
             counts.waiting_for[static_cast<std::size_t>(WaitReason::kMutex)] == kLockers;
    });
    const GoroutineCounts counts = count_goroutines();
    EXPECT_EQ(counts.running, 1u);
    EXPECT_EQ(counts.waiting, kAll);
    const SchedStats stats = sched_stats();
    EXPECT_EQ(stats.goroutines, kAll + 1);
    EXPECT_EQ(stats.started - before.started, kAll);
    EXPECT_GE(stats.stacks, kAll);
    EXPECT_GE(stats.stack_bytes, stats.stacks * (64 << 10));
    mutex.unlock();
    nothing.close();
    group.wait();
    wait_for([] { return num_goroutine() == 1; });
    EXPECT_EQ(sched_stats().ended - before.ended, kAll);
  });
}

TEST_P(StatsTest, SayWhereTheCallerRuns) {
  run_with(GetParam(), [] {
    const std::vector<ProcStats> procs = proc_stats();
    ASSERT_EQ(procs.size(), static_cast<std::size_t>(GetParam()));
    EXPECT_EQ(sched_stats().max_procs, GetParam());
    // The goroutine may lose its P at any moment, and gets one back when it parks.
    wait_for([] {
      const std::optional<MachineStats> m = machine_of(goroutine_id());
      if (!m || m->state != MachineState::kRunning) return false;
      const std::vector<ProcStats> all = proc_stats();
      return std::ranges::any_of(all, [&](const ProcStats& p) {
        return p.id == m->proc && p.machine == static_cast<int>(m->id) && p.state == ProcState::kRunning;
      });
    });
  });
}

#if !defined(TUZA_CHAOS)  // there, goroutines run without a P, which learns nothing from them
// Whether a wake-up pays depends on it (rule 6).
TEST(Stats, APLearnsHowLongGoroutinesRun) {
  const LongSlices long_slices;
  run_with(1, [] {
    static constexpr auto kLong = 500us;
    const auto average_of = [](const auto& body) {
      WaitGroup group;
      for (int i = 0; i < 500; ++i) group.go(body);
      group.wait();
      return std::chrono::nanoseconds(proc_stats().at(0).average_run_ns);
    };
    const auto nothing = [] {};
    (void)average_of(nothing);
    const auto of_long_ones = average_of([] {
      const auto end = std::chrono::steady_clock::now() + kLong;
      while (std::chrono::steady_clock::now() < end) compute(1, 100);
    });
    EXPECT_GE(of_long_ones, kLong / 2);
    EXPECT_LT(average_of(nothing), of_long_ones / 2);
  });
}
#endif

TEST_P(StatsTest, DistinguishBlockedFromSuspendedGoroutines) {
  run_with(GetParam(), [] {
    std::atomic<std::uint64_t> blocked_id = 0;
    std::atomic<bool> release = false;
    WaitGroup group;
    group.go([&] {
      blocking(CallLength::kLong, [&] {
        blocked_id = goroutine_id();
        while (!release) std::this_thread::sleep_for(1ms);
      });
    });
    wait_for([&] {
      const std::optional<MachineStats> m = machine_of(blocked_id);
      return blocked_id != 0 && m && m->state == MachineState::kBlocked && m->proc == -1;
    });
    wait_for([] { return sched_stats().lane_arrivals > 0; });
    release = true;
    group.wait();

    Hogs hogs(8);
    wait_for([] {
      return std::ranges::count(machine_stats(), MachineState::kSuspended, &MachineStats::state) > 0 &&
             sched_stats().lane_suspended > 0;
    });
    EXPECT_GT(sched_stats().suspend_signals, 0u);
  });
}

TEST_P(StatsTest, MayBeAskedForByAnyThreadWhileEverythingMoves) {
  run_with(GetParam(), [] {
    std::atomic<bool> stop = false;
    std::atomic<int> looks = 0;
    std::thread outside([&] {
      while (!stop) {
        const SchedStats stats = sched_stats();
        EXPECT_LE(stats.ended, stats.started);
        const std::vector<ProcStats> procs = proc_stats();
        for (std::size_t i = 0; i < procs.size(); ++i) EXPECT_EQ(procs[i].id, static_cast<int>(i));
        const std::vector<MachineStats> machines = machine_stats();
        EXPECT_GE(machines.size(), 1u);
        EXPECT_EQ(std::ranges::adjacent_find(machines, std::ranges::greater_equal(), &MachineStats::id),
                  machines.end());
        const GoroutineCounts counts = count_goroutines();
        EXPECT_GE(counts.running + counts.runnable + counts.waiting, 1u);
        ++looks;
      }
    });
    for (int round = 0; round < scaled(400) || looks < 20; ++round) {
      WaitGroup group;
      for (int i = 0; i < 20; ++i) {
        group.go([] {
          yield();
          sleep_for(10us);
        });
      }
      if (round % 16 == 0) set_max_procs(1 + round / 16 % 4);
      group.wait();
    }
    stop = true;
    // Not a plain join(): it would hold the P, which `outside` does not need but others do.
    blocking([&] { outside.join(); });
  });
}

}  // namespace
}  // namespace tuza
