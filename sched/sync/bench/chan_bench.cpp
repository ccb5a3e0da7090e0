// Channels: a round trip through two unbuffered ones; an item through a buffered one.
#include <tuza/sched/bench/bench.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/wait_group.h>

namespace tuza {
namespace {

void BM_ChanUnbuffered(benchmark::State& state) {
  constexpr std::int64_t kBatch = 10'000;
  bench::in_runtime(state.range(0), [&] {
    Chan<std::int64_t> there, back;
    WaitGroup group;
    group.go([&] {
      for (std::int64_t x : there) back.send(x + 1);
      back.close();
    });
    std::int64_t x = 0, rounds = 0;
    while (state.KeepRunningBatch(kBatch)) {
      for (std::int64_t i = 0; i < kBatch; ++i) {
        there.send(x);
        x = *back.recv();
      }
      rounds += kBatch;
    }
    there.close();
    if (back.recv().has_value() || x != rounds) state.SkipWithError("a round got lost");
    group.wait();
  });
}
BENCHMARK(BM_ChanUnbuffered)->Apply(bench::both_proc_counts);

void BM_ChanBuffered128(benchmark::State& state) {
  constexpr std::int64_t kBatch = 10'000;
  bench::in_runtime(state.range(0), [&] {
    Chan<std::int64_t> items{128};
    std::int64_t sum = 0, sent = 0;
    WaitGroup group;
    group.go([&] {
      for (std::int64_t x : items) sum += x;
    });
    while (state.KeepRunningBatch(kBatch)) {
      for (std::int64_t i = 0; i < kBatch; ++i) items.send(++sent);
    }
    items.close();
    group.wait();
    if (sum != sent * (sent + 1) / 2) state.SkipWithError("an item got lost");
  });
}
BENCHMARK(BM_ChanBuffered128)->Apply(bench::both_proc_counts);

}  // namespace
}  // namespace tuza
