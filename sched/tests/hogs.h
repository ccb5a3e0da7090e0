// Goroutines that compute and never park, for the tests of slices and of the lane.
#pragma once

#include <tuza/sched/blocking.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/stats.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/sleep.h>

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

// Nothing about the function is known to its callers: calls are neither inlined, nor merged, nor left out.
#if defined(__clang__)
#define TUZA_NOIPA [[gnu::noinline, clang::optnone]]
#else
#define TUZA_NOIPA [[gnu::noipa]]
#endif

namespace tuza::testing {

// The number of hogs in most tests.
inline constexpr int kHogs = 8;

// Like yield_until(), but without computing meanwhile.
template <class Condition>
void wait_for(Condition&& condition) {
  while (!condition()) sleep_for(std::chrono::milliseconds(1));
}

// In these tests as many goroutines compute in the lane as there are Ps. Tests of the extra ones unset it.
inline const bool g_no_more_than_ps = setenv("TUZA_LANE_EXTRA", "0", 0) == 0;

// The goroutine is suspended in the middle of its code.
inline bool suspended(std::uint64_t goroutine) {
  const std::optional<MachineStats> m = machine_of(goroutine);
  return m && m->state == MachineState::kSuspended;
}

// The CPU time of the calling thread.
inline std::int64_t own_cpu_ns() {
  struct timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return used.tv_sec * 1'000'000'000 + used.tv_nsec;
}

// Calls `body` on `count` goroutines that are in blocking calls at the same time, each on a thread of its own.
inline void block_at_once(int count, const std::function<void()>& body = [] {}) {
  std::atomic<int> inside = 0;
  WaitGroup group;
  for (int i = 0; i < count; ++i) {
    group.go([&] {
      blocking(CallLength::kLong, [&] {
        ++inside;
        while (inside < count) ::usleep(1000);
        body();
      });
    });
  }
  group.wait();
}

// Some thousands of instructions whose result depends on each of them; executed even if the result is unused.
TUZA_NOIPA inline std::uint64_t compute(std::uint64_t seed, int rounds = 2000) {
  for (int i = 0; i < rounds; ++i) seed = seed * 6364136223846793005u + 1442695040888963407u;
  return seed;
}

// `count` goroutines; each calls `step` with its number repeatedly, and never the runtime, until end().
class Hogs {
 public:
  using Step = std::function<void(int hog)>;

  explicit Hogs(int count, Step step = {})
      : step_(std::move(step)), rounds_(static_cast<std::size_t>(count)), seen_(rounds_.size()) {
    for (int i = 0; i < count; ++i) group_.go([this, i] { burn(i); });
  }
  ~Hogs() { end(); }
  Hogs(const Hogs&) = delete;
  Hogs& operator=(const Hogs&) = delete;

  // Parks until all have ended.
  void end() {
    stop_.store(true, std::memory_order_relaxed);
    group_.wait();
  }

  [[nodiscard]] int count() const { return static_cast<int>(rounds_.size()); }

  // All goroutines without a P are these hogs, and those beyond the number of Ps are suspended.
  [[nodiscard]] bool surplus_is_suspended() const {
    const SchedStats now = sched_stats();
    const auto procs = static_cast<std::uint32_t>(now.max_procs);
    return now.lane_suspended + procs == static_cast<std::uint32_t>(count()) && now.lane_computing <= procs;
  }

  // Parks until each hog has made progress `times` times.
  void wait_for_turns(int times) {
    for (int t = 0; t < times; ++t) {
      for (std::size_t i = 0; i < rounds_.size(); ++i) seen_[i] = rounds_[i].load(std::memory_order_relaxed);
      wait_for([this] {
        for (std::size_t i = 0; i < rounds_.size(); ++i) {
          // One round may have ended just after its counter was read, with the hog suspended since.
          if (rounds_[i].load(std::memory_order_relaxed) < seen_[i] + 2) return false;
        }
        return true;
      });
    }
  }

 private:
  void burn(int i) {
    std::atomic<std::uint64_t>& rounds = rounds_[static_cast<std::size_t>(i)];
    while (!stop_.load(std::memory_order_relaxed)) {
      if (step_) step_(i);
      rounds.fetch_add(1, std::memory_order_relaxed);
    }
  }

  Step step_;
  std::atomic<bool> stop_{false};
  std::vector<std::atomic<std::uint64_t>> rounds_;
  std::vector<std::uint64_t> seen_;
  WaitGroup group_;
};

// Waits until `more` signals have been sent to suspend goroutines.
inline void wait_for_suspensions(std::uint64_t more) {
  const std::uint64_t before = sched_stats().suspend_signals;
  wait_for([=] { return sched_stats().suspend_signals >= before + more; });
}

}  // namespace tuza::testing
