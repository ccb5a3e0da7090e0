// select with two cases: both ready; or none ready, so that each select waits for the other goroutine.
#include <tuza/sched/bench/bench.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/select.h>
#include <tuza/sched/sync/wait_group.h>

namespace tuza {
namespace {

// Two goroutines whose selects meet: one receives from either of two channels, the other sends to either. An
// operation is one item, for which one of the two has waited: a select that found nothing ready, and the
// select that ended its wait.
void BM_Select2Blocking(benchmark::State& state) {
  constexpr std::int64_t kBatch = 10'000;
  bench::in_runtime(state.range(0), [&] {
    Chan<std::int64_t> odd, even;
    std::int64_t sum = 0, sent = 0, ended = 0;
    WaitGroup group;
    group.go([&] {
      const auto add = [&](std::optional<std::int64_t> x) {
        if (x) {
          sum += *x;
        } else {
          ++ended;
        }
      };
      while (ended == 0) select(on_recv(odd, add), on_recv(even, add));
    });
    while (state.KeepRunningBatch(kBatch)) {
      for (std::int64_t i = 0; i < kBatch; ++i) {
        ++sent;
        select(on_send(odd, sent), on_send(even, sent));
      }
    }
    odd.close();
    group.wait();
    if (sum != sent * (sent + 1) / 2) state.SkipWithError("a value got lost");
  });
}
BENCHMARK(BM_Select2Blocking)->Apply(bench::both_proc_counts);

void BM_Select2Ready(benchmark::State& state) {
  constexpr std::int64_t kBatch = 10'000;
  bench::in_runtime(state.range(0), [&] {
    Chan<std::int64_t> a{kBatch}, b{kBatch};
    while (state.KeepRunningBatch(kBatch)) {
      state.PauseTiming();
      for (std::int64_t i = 1; i <= kBatch; ++i) {
        a.send(i);
        b.send(i);
      }
      state.ResumeTiming();
      std::int64_t sum = 0;
      const auto add = [&](std::optional<std::int64_t> x) { sum += *x; };
      for (std::int64_t i = 0; i < kBatch; ++i) select(on_recv(a, add), on_recv(b, add));
      state.PauseTiming();
      while (const auto x = a.try_recv()) sum += *x;
      while (const auto x = b.try_recv()) sum += *x;
      if (sum != kBatch * (kBatch + 1)) state.SkipWithError("a value got lost");
      state.ResumeTiming();
    }
  });
}
BENCHMARK(BM_Select2Ready)->Apply(bench::both_proc_counts);

}  // namespace
}  // namespace tuza
