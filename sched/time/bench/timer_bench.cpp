// Timers beside a million others that are pending, due at random times between one and two hours from now.
#include <tuza/sched/bench/bench.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/rt/base/random.h>
#include <tuza/sched/time/timer.h>

#include <chrono>
#include <memory>

namespace tuza {
namespace {

constexpr std::uint32_t kPending = 1'000'000;
constexpr int kBatch = 10'000;
using Nanoseconds = std::chrono::nanoseconds;

Nanoseconds random_delay(rt::Random& random) {
  constexpr std::uint32_t kHourMs = 3'600'000;
  return Nanoseconds((std::int64_t{kHourMs} + random.below(kHourMs)) * 1'000'000);
}

class Million {
 public:
  Million() : timers_(new Timer[kPending]) {
    for (std::uint32_t i = 0; i < kPending; ++i) timers_[i].reset(random_delay(random_));
  }
  [[nodiscard]] bool all_pending() {
    bool all = true;
    for (std::uint32_t i = 0; i < kPending; ++i) all = timers_[i].stop() && all;
    return all;
  }
  Timer& timer(std::uint32_t i) { return timers_[i]; }

 private:
  rt::Random random_{1};
  std::unique_ptr<Timer[]> timers_;
};

// Starts a timer and stops it: what a call with a time limit does.
void BM_TimerAddStop1M(benchmark::State& state) {
  bench::in_runtime(state.range(0), [&] {
    Million million;
    rt::Random random(2);
    const auto timers = std::make_unique<Timer[]>(1024);
    std::uint32_t i = 0;
    bool good = true;
    yield();
    while (state.KeepRunningBatch(kBatch)) {
      for (int n = 0; n < kBatch; ++n) {
        Timer& timer = timers[i++ % 1024];
        good = !timer.reset(random_delay(random)) && good;
        good = timer.stop() && good;
      }
      yield();  // or it loses its P after a slice, what a goroutine that waits now and then does not
    }
    if (!good || !million.all_pending()) state.SkipWithError("a timer fired, or was not stopped");
  });
}
BENCHMARK(BM_TimerAddStop1M)->Apply(bench::both_proc_counts);

// Postpones one after the other of the million, by more than an hour: what deadlines do.
void BM_TimerReset1M(benchmark::State& state) {
  bench::in_runtime(state.range(0), [&] {
    Million million;
    bool good = true;
    std::uint32_t i = 0;
    yield();
    while (state.KeepRunningBatch(kBatch)) {
      for (int n = 0; n < kBatch; ++n) {
        good = million.timer(i).reset(std::chrono::hours(2)) && good;
        i = i + 1 == kPending ? 0 : i + 1;
      }
      yield();
    }
    if (!good || !million.all_pending()) state.SkipWithError("a timer fired early");
  });
}
BENCHMARK(BM_TimerReset1M)->Apply(bench::both_proc_counts);

// Moves one of the million, taken at random, to a random time: as far from the caches as can be.
void BM_TimerResetAnywhere1M(benchmark::State& state) {
  bench::in_runtime(state.range(0), [&] {
    Million million;
    rt::Random random(2);
    bool good = true;
    yield();
    while (state.KeepRunningBatch(kBatch)) {
      for (int n = 0; n < kBatch; ++n) {
        good = million.timer(random.below(kPending)).reset(random_delay(random)) && good;
      }
      yield();
    }
    if (!good || !million.all_pending()) state.SkipWithError("a timer fired early");
  });
}
BENCHMARK(BM_TimerResetAnywhere1M)->Apply(bench::both_proc_counts);

}  // namespace
}  // namespace tuza
