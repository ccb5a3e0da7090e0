// A goroutine that computes a result and one that waits for it; and the pool underneath.
#include <tuza/sched/bench/bench.h>
#include <tuza/sched/goroutine.h>
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

// As large as an object worth pooling; its destructor adds its number of uses to the sum.
struct Scratch {
  explicit Scratch(std::int64_t& sum_of_uses) : sum(sum_of_uses) {}
  ~Scratch() { sum += uses; }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::int64_t& sum;
  std::int64_t uses = 0;
  std::array<std::byte, 256> bytes;
};

void BM_PoolGetPut(benchmark::State& state) {
  constexpr int kBatch = 1000;
  bench::in_runtime(state.range(0), [&] {
    std::int64_t uses = 0, found = 0;
    {
      Pool<Scratch> pool([&found] { return Scratch(found); });
      while (state.KeepRunningBatch(kBatch)) {
        for (int i = 0; i < kBatch; ++i) ++pool.get()->uses;
        uses += kBatch;
        yield();  // otherwise it would lose its P for computing, and the lists with it
      }
    }
    if (found != uses) state.SkipWithError("an object got lost");
  });
}
BENCHMARK(BM_PoolGetPut)->Apply(bench::both_proc_counts);

}  // namespace
}  // namespace tuza
