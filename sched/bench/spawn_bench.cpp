// Starting goroutines: one at a time, in batches, and as a tree of a million; and the cost of a parked
// goroutine.
#include <tuza/sched/bench/bench.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/sync/wait_group.h>

#include <array>
#include <fstream>
#include <numeric>

#include <unistd.h>

namespace tuza {
namespace {

void BM_SpawnJoin(benchmark::State& state) {
  bench::in_runtime(state.range(0), [&] {
    std::int64_t ran = 0;
    for (auto _ : state) {
      WaitGroup group;
      group.go([&ran] { ++ran; });
      group.wait();
    }
    if (ran != static_cast<std::int64_t>(state.iterations())) state.SkipWithError("a goroutine did not run");
  });
}
BENCHMARK(BM_SpawnJoin)->Apply(bench::both_proc_counts);

void BM_SpawnBatch1000(benchmark::State& state) {
  constexpr std::int64_t kBatch = 1000;
  bench::in_runtime(state.range(0), [&] {
    while (state.KeepRunningBatch(kBatch)) {
      std::array<char, kBatch> ran{};
      WaitGroup group;
      for (char& flag : ran) group.go([&flag] { flag = 1; });
      group.wait();
      if (std::accumulate(ran.begin(), ran.end(), 0) != kBatch) {
        state.SkipWithError("a goroutine did not run");
      }
    }
  });
}
BENCHMARK(BM_SpawnBatch1000)->Apply(bench::both_proc_counts);

// The skynet benchmark (github.com/atemerev/skynet): a tree of goroutines, ten children each, whose million
// leaves return their numbers and whose inner goroutines return the sums.
std::int64_t skynet(std::int64_t number, std::int64_t leaves) {
  if (leaves == 1) return number;
  std::array<std::int64_t, 10> sums{};
  WaitGroup group;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::int64_t part = leaves / 10;
    group.go([&sum = sums[i], first = number + static_cast<std::int64_t>(i) * part, part] {
      sum = skynet(first, part);
    });
  }
  group.wait();
  return std::accumulate(sums.begin(), sums.end(), std::int64_t{0});
}

void BM_Skynet1M(benchmark::State& state) {
  constexpr std::int64_t kGoroutines = 1'111'110;
  bench::in_runtime(state.range(0), [&] {
    skynet(0, 1'000'000);  // touches every stack for the first time
    while (state.KeepRunningBatch(kGoroutines)) {
      if (skynet(0, 1'000'000) != 499'999'500'000) state.SkipWithError("wrong sum");
    }
  });
}
BENCHMARK(BM_Skynet1M)->Apply(bench::both_proc_counts);

std::int64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  in >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

void BM_ParkedMemory1M(benchmark::State& state) {
  constexpr std::int64_t kGoroutines = 1'000'000;
  bench::in_runtime(state.range(0), [&] {
    while (state.KeepRunningBatch(kGoroutines)) {
      WaitGroup gate, done;
      gate.add(1);
      const std::int64_t before = resident_bytes();
      std::atomic<std::int64_t> parked{0};
      for (std::int64_t i = 0; i < kGoroutines; ++i) {
        done.go([&gate, &parked] {
          parked.fetch_add(1, std::memory_order_relaxed);
          gate.wait();
        });
      }
      while (parked.load() != kGoroutines) yield();
      const std::int64_t after = resident_bytes();
      state.counters["bytes_per_goroutine"] =
          static_cast<double>(after - before) / static_cast<double>(kGoroutines);
      gate.done();
      done.wait();
    }
  });
}
BENCHMARK(BM_ParkedMemory1M)->Apply(bench::both_proc_counts)->Iterations(1);

}  // namespace
}  // namespace tuza
