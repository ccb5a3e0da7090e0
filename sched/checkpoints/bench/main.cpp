// One round of measurements, for compare.py: lines of `NAME VALUE UNIT CHECK`.
#include <tuza/sched/checkpoints/bench/work.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/run.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <vector>

namespace tuza::bench {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

double ns_since(Clock::time_point start) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// The best of three: what else runs on the machine only ever adds.
void measure(const Work& work) {
  double best = 1e18;
  std::uint64_t check = 0;
  for (int i = 0; i < 3; ++i) {
    const auto start = Clock::now();
    check = work.run(work.rounds);
    best = std::min(best, ns_since(start));
  }
  std::printf("%s %.3f ns/%s %" PRIu64 "\n", work.name, best / static_cast<double>(work.rounds), work.round,
              check);
}

// How late a goroutine comes that sleeps for a millisecond at a time, while `hogs` compute.
void measure_ticker(int hogs) {
  std::atomic<bool> stop = false;
  WaitGroup group;
  for (int i = 0; i < hogs; ++i) group.go([&stop] { spin_until(stop); });
  std::vector<double> late_ms;
  std::uint32_t threads = 0;
  const auto end = Clock::now() + 2s;
  for (auto due = Clock::now() + 1ms; due < end; due = Clock::now() + 1ms) {
    sleep_until(due);
    late_ms.push_back(ns_since(due) / 1e6);
    threads = std::max(threads, rt::active()->ms_live.load());
  }
  stop = true;
  group.wait();
  std::ranges::sort(late_ms);
  const auto at = [&late_ms](std::size_t percent) { return late_ms[(late_ms.size() - 1) * percent / 100]; };
  std::printf("ticker_%dhogs_p50 %.3f ms 0\n", hogs, at(50));
  std::printf("ticker_%dhogs_p99 %.3f ms 0\n", hogs, at(99));
  std::printf("ticker_%dhogs_max %.3f ms 0\n", hogs, at(100));
  std::printf("ticker_%dhogs_threads %u threads 0\n", hogs, threads);
}

}  // namespace
}  // namespace tuza::bench

int main() {
  using namespace tuza::bench;
  tuza::run(tuza::RunOptions{.max_procs = 2}, [] {
    for (const Work& work : all_work()) measure(work);
    return 0;
  });
  for (const int hogs : {1, 8, 100}) {  // each in a runtime, and with threads, of its own
    tuza::run(tuza::RunOptions{.max_procs = 2}, [hogs] {
      measure_ticker(hogs);
      return 0;
    });
  }
}
