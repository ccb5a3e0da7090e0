// Helpers shared by the scheduler's tests.
#pragma once

#include <gtest/gtest.h>
#include <tuza/sched/arch/sanitizer.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/run.h>
#include <tuza/sched/stats.h>
#include <tuza/sched/time/sleep.h>
#include <tuza/sched/wait_reason.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace tuza::testing {

#if defined(TUZA_CHAOS)
inline constexpr bool kChaos = true;
#else
inline constexpr bool kChaos = false;
#endif

// Scales a large count to what a build can do in the time of the release build: sanitizers are slow, and in
// the chaos build every switch is a switch of threads.
constexpr int scaled(int count) {
  if constexpr (kChaos) return count / 50 > 0 ? count / 50 : 1;
  if constexpr (rt::kTsan) return count / 20 > 0 ? count / 20 : 1;
  if constexpr (rt::kAsan) return count / 4 > 0 ? count / 4 : 1;
  return count;
}

// Runs `body` as the first goroutine of a runtime with `procs` Ps, and checks that it leaves none behind.
inline void run_with(int procs, const std::function<void()>& body) {
  const int status = run(RunOptions{.max_procs = procs}, [&body] {
    body();
    // Goroutines that have been joined may still execute their last instructions, on threads without a core.
    for (int i = 0; i < 10'000 && num_goroutine() > 1; ++i) sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(num_goroutine(), 1u) << "goroutines leaked";
    return 0;
  });
  EXPECT_EQ(status, 0);
}

// For tests of execution order: no goroutine loses its P because the machine is slow. Use around run_with().
class LongSlices {
 public:
  LongSlices() {
    setenv("TUZA_SLICE_MS", "10000", 1);
    setenv("TUZA_EARLY_HANDOFF_US", "0", 1);
  }
  ~LongSlices() {
    unsetenv("TUZA_SLICE_MS");
    unsetenv("TUZA_EARLY_HANDOFF_US");
  }
  LongSlices(const LongSlices&) = delete;
  LongSlices& operator=(const LongSlices&) = delete;
};

// Yields until `condition` holds. Tests name the event that they wait for instead of sleeping; if the event
// never comes, the timeout of the whole test ends the wait.
template <class Condition>
void yield_until(Condition&& condition) {
  while (!condition()) yield();
}

// The number of goroutines that are parked for `reason`, or about to be.
inline std::size_t goroutines_waiting(WaitReason reason) {
  return count_goroutines().waiting_for[static_cast<std::size_t>(reason)];
}
inline void wait_until_parked(std::size_t n, WaitReason reason) {
  yield_until([=] { return goroutines_waiting(reason) == n; });
}
// Waits until all goroutines but the caller, and those that they have started, are parked. Checked twice: a
// goroutine that waits for one it starts may be between the start and the wait.
inline void wait_until_all_park() {
  const auto all_wait = [] {
    const GoroutineCounts counts = count_goroutines();
    return counts.running == 1 && counts.runnable == 0;
  };
  for (int seen = 0; seen < 2; seen = all_wait() ? seen + 1 : 0) sleep_for(std::chrono::milliseconds(1));
}

// True while `awake` Ms are awake. When an M has gone to sleep, it has looked for a deadlock if it was the last.
inline bool awake_ms_are(std::uint32_t awake) {
  const SchedStats stats = sched_stats();
  return stats.threads_idle + awake == stats.threads;
}

// The M that runs the goroutine; nullopt if none seems to.
inline std::optional<MachineStats> machine_of(std::uint64_t goroutine) {
  for (const MachineStats& m : machine_stats()) {
    if (m.goroutine == goroutine) return m;
  }
  return std::nullopt;
}
// The number of the caller's P; -1 without one. It may lose the P at any moment.
inline int own_p() {
  const std::optional<MachineStats> m = machine_of(goroutine_id());
  return m ? m->proc : -1;
}
// How many Ms have been in use at the same time, at least. An M whose thread has ended is used again.
inline std::uint32_t ms_numbered() {
  std::uint32_t count = 0;
  for (const MachineStats& m : machine_stats()) count = std::max(count, m.id + 1);
  return count;
}

// Numbers that a seed repeats on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  // Less than `bound`, which is small: the slight bias does not matter.
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(engine_() % bound); }

 private:
  std::mt19937_64 engine_;
};

// How many Ps to test with: those of `counts`; in the builds of sanitizers, which are slow, two.
inline std::vector<int> proc_counts(std::vector<int> counts) {
  if constexpr (rt::kTsan || rt::kAsan) return {2};
  return counts;
}

// A test that runs with one P and with several.
class WithProcs : public ::testing::TestWithParam<int> {};
#define TUZA_WITH_PROCS(suite) \
  INSTANTIATE_TEST_SUITE_P(P, suite, ::testing::ValuesIn(::tuza::testing::proc_counts({1, 2, 4})))

}  // namespace tuza::testing
