// The bare wait: two goroutines that wake each other through events, one wait and one wake each.
#include <tuza/sched/bench/bench.h>
#include <tuza/sched/sync/detail/event.h>
#include <tuza/sched/sync/wait_group.h>

#include <array>
#include <memory>

namespace tuza {
namespace {

void BM_EventRoundTrip(benchmark::State& state) {
  constexpr int kBatch = 10'000;
  bench::in_runtime(state.range(0), [&] {
    while (state.KeepRunningBatch(kBatch)) {
      auto there = std::make_unique<std::array<rt::Event, kBatch>>();
      auto back = std::make_unique<std::array<rt::Event, kBatch>>();
      std::int64_t answered = 0;
      WaitGroup group;
      group.go([&] {
        for (int i = 0; i < kBatch; ++i) {
          (*there)[i].wait(WaitReason::kTest);
          ++answered;
          (*back)[i].fire();
        }
      });
      for (int i = 0; i < kBatch; ++i) {
        (*there)[i].fire();
        (*back)[i].wait(WaitReason::kTest);
      }
      group.wait();
      if (answered != kBatch) state.SkipWithError("a round got lost");
    }
  });
}
BENCHMARK(BM_EventRoundTrip)->Apply(bench::both_proc_counts);

}  // namespace
}  // namespace tuza
