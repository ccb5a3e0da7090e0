// Locks. The Go program sched/sync/bench/go/locks.go measures the same for Go's locks.
#include <tuza/sched/bench/bench.h>
#include <tuza/sched/sync/cond.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/once.h>
#include <tuza/sched/sync/rw_mutex.h>
#include <tuza/sched/sync/semaphore.h>
#include <tuza/sched/sync/wait_group.h>

#include <algorithm>
#include <mutex>
#include <shared_mutex>

namespace tuza {
namespace {

constexpr std::int64_t kBatch = 1'000'000;

// `goroutines` of them call `body` kBatch times in all; one call is one iteration.
template <class Body>
void share(benchmark::State& state, int goroutines, Body&& body) {
  bench::in_runtime(state.range(0), [&] {
    while (state.KeepRunningBatch(kBatch)) {
      WaitGroup group;
      for (int g = 0; g < goroutines; ++g) {
        group.go([&] {
          for (std::int64_t i = 0; i < kBatch / goroutines; ++i) body();
        });
      }
      group.wait();
    }
  });
}

void check(benchmark::State& state, std::int64_t counted) {
  if (counted != static_cast<std::int64_t>(state.iterations()))
    state.SkipWithError("the lock did not exclude");
}

void mutex_by(benchmark::State& state, int goroutines) {
  Mutex mutex;
  std::int64_t counter = 0;
  share(state, goroutines, [&] {
    const std::scoped_lock lock(mutex);
    ++counter;
  });
  check(state, counter);
}
void BM_MutexUncontended(benchmark::State& state) { mutex_by(state, 1); }
void BM_MutexContended8(benchmark::State& state) { mutex_by(state, 8); }
BENCHMARK(BM_MutexUncontended)->Apply(bench::both_proc_counts);
BENCHMARK(BM_MutexContended8)->Apply(bench::both_proc_counts);

void rw_readers(benchmark::State& state, int goroutines) {
  RWMutex mutex;
  std::int64_t value = 1;
  std::atomic<std::int64_t> sum{0};
  share(state, goroutines, [&] {
    std::int64_t seen = 0;
    {
      const std::shared_lock lock(mutex);
      seen = value;
    }
    if (seen != 1) sum.fetch_add(1, std::memory_order_relaxed);
  });
  if (sum != 0) state.SkipWithError("a reader saw what nobody wrote");
}
void BM_RWMutexReadUncontended(benchmark::State& state) { rw_readers(state, 1); }
void BM_RWMutexRead8(benchmark::State& state) { rw_readers(state, 8); }
BENCHMARK(BM_RWMutexReadUncontended)->Apply(bench::both_proc_counts);
BENCHMARK(BM_RWMutexRead8)->Apply(bench::both_proc_counts);

void BM_RWMutexWrite8(benchmark::State& state) {
  RWMutex mutex;
  std::int64_t counter = 0;
  share(state, 8, [&] {
    const std::scoped_lock lock(mutex);
    ++counter;
  });
  check(state, counter);
}
BENCHMARK(BM_RWMutexWrite8)->Apply(bench::both_proc_counts);

void semaphore_by(benchmark::State& state, int goroutines) {
  Semaphore semaphore(1);
  std::int64_t counter = 0;
  share(state, goroutines, [&] {
    semaphore.acquire();
    ++counter;
    semaphore.release();
  });
  check(state, counter);
}
void BM_SemaphoreUncontended(benchmark::State& state) { semaphore_by(state, 1); }
void BM_SemaphoreContended8(benchmark::State& state) { semaphore_by(state, 8); }
BENCHMARK(BM_SemaphoreUncontended)->Apply(bench::both_proc_counts);
BENCHMARK(BM_SemaphoreContended8)->Apply(bench::both_proc_counts);

// Two goroutines that take turns: one iteration is a wait and a signal of each.
void BM_CondRoundTrip(benchmark::State& state) {
  constexpr std::int64_t kRounds = 10'000;
  Mutex mutex;
  Cond changed;
  std::int64_t turn = 0;
  bench::in_runtime(state.range(0), [&] {
    const auto play = [&](std::int64_t parity) {
      std::unique_lock lock(mutex);
      for (std::int64_t i = 0; i < kRounds; ++i) {
        changed.wait(lock, [&] { return turn % 2 == parity; });
        ++turn;
        changed.signal();
      }
    };
    while (state.KeepRunningBatch(kRounds)) {
      WaitGroup group;
      group.go([&] { play(0); });
      play(1);
      group.wait();
    }
  });
  check(state, turn / 2);
}
BENCHMARK(BM_CondRoundTrip)->Apply(bench::both_proc_counts);

void BM_OnceDone(benchmark::State& state) {
  Once once;
  std::int64_t calls = 0;
  share(state, 1, [&] { once.call([&] { ++calls; }); });
  if (calls != 1) state.SkipWithError("not once");
}
BENCHMARK(BM_OnceDone)->Apply(bench::both_proc_counts);

}  // namespace
}  // namespace tuza
