// Helpers shared by the scheduler's tests.
#pragma once

#include <gtest/gtest.h>
#include <tuza/sched/arch/sanitizer.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/rt/testing/chaos.h>
#include <tuza/sched/run.h>
#include <tuza/sched/time/sleep.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <utility>

namespace tuza::testing {

// Scales a large count to what a build can do in the time of the release build: sanitizers are slow, and in
// the chaos build every switch is a switch of threads.
constexpr int scaled(int count) {
  if constexpr (rt::chaos::kEnabled) return count / 50 > 0 ? count / 50 : 1;
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

// A test that runs with one P and with several.
class WithProcs : public ::testing::TestWithParam<int> {};
#define TUZA_WITH_PROCS(suite) INSTANTIATE_TEST_SUITE_P(P, suite, ::testing::Values(1, 2, 4))

}  // namespace tuza::testing
