// A goroutine that computes something, and the one that waits for it; and the pool beneath.
#include <tuza/sched/bench/bench.h>
#include <tuza/sched/sync/future.h>
#include <tuza/sched/sync/pool.h>

#include <array>

namespace tuza {
namespace {

void BM_FutureRoundTrip(benchmark::State& state) {
  bench::in_runtime(state.range(0), [&] {
    std::int64_t sum = 0, asked = 0;
    for (auto _ : state) {
      ++asked;
      sum += async([asked] { return asked; }).get();
    }
    if (sum != asked * (asked + 1) / 2) state.SkipWithError("a result got lost");
  });
}
BENCHMARK(BM_FutureRoundTrip)->Apply(bench::both_proc_counts);

void BM_PoolGetPut(benchmark::State& state) {
  bench::in_runtime(state.range(0), [&] {
    Pool<std::array<std::int64_t, 32>> pool([] { return std::array<std::int64_t, 32>{}; });
    std::int64_t uses = 0;
    for (auto _ : state) {
      auto item = pool.get();
      ++(*item)[0];
      ++uses;
    }
    std::int64_t found = 0;
    std::array<std::optional<Pool<std::array<std::int64_t, 32>>::Item>, 4> items;
    for (auto& item : items) {
      item = pool.get();
      found += (**item)[0];
    }
    if (found != uses) state.SkipWithError("an object got lost");
  });
}
BENCHMARK(BM_PoolGetPut)->Apply(bench::both_proc_counts);

}  // namespace
}  // namespace tuza
