// Switching: the bare context switch, and yield() among goroutines.
#include <tuza/sched/arch/context.h>
#include <tuza/sched/bench/bench.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/sync/wait_group.h>

#include <vector>

namespace tuza {
namespace {

struct PingPong {
  rt::Context here, there;
  std::int64_t switches = 0;
};

void answer(void* argument) {
  auto& pair = *static_cast<PingPong*>(argument);
  for (;;) {
    ++pair.switches;
    rt::context_switch(&pair.there, pair.here);
  }
}

void BM_RawSwitch(benchmark::State& state) {
  constexpr int kBatch = 1'000'000;
  std::vector<std::byte> stack(64 << 10);
  PingPong pair;
  pair.there =
      rt::make_context(reinterpret_cast<std::uintptr_t>(stack.data() + stack.size()), &answer, &pair);
  std::int64_t expected = 0;
  while (state.KeepRunningBatch(kBatch)) {
    for (int i = 0; i < kBatch / 2; ++i) rt::context_switch(&pair.here, pair.there);
    expected += kBatch / 2;
  }
  if (pair.switches != expected) state.SkipWithError("a switch got lost");
}
BENCHMARK(BM_RawSwitch)->Apply(bench::both_proc_counts);

void BM_Yield(benchmark::State& state) {
  const std::int64_t goroutines = state.range(0);
  constexpr std::int64_t kBatch = 4'000'000;
  const std::int64_t yields = kBatch / goroutines;
  bench::in_runtime(state.range(1), [&] {
    while (state.KeepRunningBatch(kBatch)) {
      std::vector<std::int64_t> done(static_cast<std::size_t>(goroutines));
      WaitGroup group;
      for (std::int64_t& count : done) {
        group.go([&count, yields] {
          for (std::int64_t i = 0; i < yields; ++i) {
            yield();
            ++count;
          }
        });
      }
      group.wait();
      for (const std::int64_t count : done) {
        if (count != yields) state.SkipWithError("a goroutine did not finish");
      }
    }
  });
}
BENCHMARK(BM_Yield)
    ->ArgNames({"", "P"})
    ->ArgsProduct({{2, 10'000}, {1, 2}})
    ->UseRealTime()
    ->MeasureProcessCPUTime();

}  // namespace
}  // namespace tuza
