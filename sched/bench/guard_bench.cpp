// The runtime's guard (rt/enter.h): the cost that every call into the runtime pays, and the cost of a marked
// blocking call that does nothing.
#include <tuza/sched/bench/bench.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/rt/enter.h>

#include <cstdlib>

namespace tuza {
namespace {

// Without a P every enter takes another path; no goroutine that calls the runtime all the time stays without
// a P.
void BM_EnterLeave(benchmark::State& state) {
  constexpr int kBatch = 10'000'000;
  setenv("TUZA_SLICE_MS", "10000", 1);
  bench::in_runtime(state.range(0), [&state] {
    std::int64_t without_p = 0;
    while (state.KeepRunningBatch(kBatch)) {
      for (int i = 0; i < kBatch; ++i) {
        const rt::Enter rt;
        without_p += rt.p() == nullptr ? 1 : 0;
      }
    }
    if (without_p > 0) state.SkipWithError("it has lost its P");
  });
  unsetenv("TUZA_SLICE_MS");
}
BENCHMARK(BM_EnterLeave)->Apply(bench::both_proc_counts);

void BM_BlockingCall(benchmark::State& state) {
  constexpr int kBatch = 10'000'000;
  bench::in_runtime(state.range(0), [&state] {
    std::int64_t sum = 0, expected = 0;
    while (state.KeepRunningBatch(kBatch)) {
      for (int i = 0; i < kBatch; ++i) sum += blocking([i] { return i % 2; });
      expected += kBatch / 2;
    }
    if (sum != expected) state.SkipWithError("a call was not made");
  });
}
BENCHMARK(BM_BlockingCall)->Apply(bench::both_proc_counts);

}  // namespace
}  // namespace tuza
