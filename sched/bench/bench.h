// Helpers shared by the scheduler benchmarks.
//
// Times are wall-clock per operation: each benchmark counts its operations as iterations
// (KeepRunningBatch), so that they can be read against the table of rivals. Every benchmark checks its
// result and fails (SkipWithError) if it is wrong. Arguments: what the benchmark varies, then P, the number
// of processors.
#pragma once

#include <benchmark/benchmark.h>
#include <tuza/sched/run.h>

#include <utility>

namespace tuza::bench {

// Runs `body` on the first goroutine of a runtime with `procs` Ps.
template <class F>
void in_runtime(std::int64_t procs, F&& body) {
  run(RunOptions{.max_procs = static_cast<int>(procs)}, std::forward<F>(body));
}

// Wall-clock time decides: CPU time of one thread means nothing for goroutines.
inline void both_proc_counts(benchmark::internal::Benchmark* b) {
  b->ArgName("P")->Arg(1)->Arg(2)->UseRealTime()->MeasureProcessCPUTime();
}

}  // namespace tuza::bench
