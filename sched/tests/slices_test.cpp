// A goroutine that runs for long delays others by no more than a slice.
#include <tuza/sched/blocking.h>
#include <tuza/sched/go.h>
#include <tuza/sched/preempt.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/hogs.h>

#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

namespace tuza {
namespace {

using testing::run_with;
using testing::scaled;
using namespace std::chrono_literals;

class SlicesTest : public testing::WithProcs {};
TUZA_WITH_PROCS(SlicesTest);

// Burns CPU, without a call into the runtime, until told to stop.
void burn_until(const std::atomic<bool>& stop) {
  while (!stop.load(std::memory_order_relaxed)) {
  }
}

TEST_P(SlicesTest, OthersRunWhileEveryPIsComputedOn) {
  run_with(GetParam(), [] {
    std::atomic<bool> stop = false;
    std::atomic<int> begun = 0;
    WaitGroup hogs;
    for (int i = 0; i < 8; ++i) {
      hogs.go([&] {
        ++begun;
        burn_until(stop);
      });
    }
    testing::wait_for([&begun] { return begun == 8; });
    yield();
    WaitGroup others;
    std::atomic<int> ran = 0;
    for (int i = 0; i < 50; ++i) others.go([&ran] { ++ran; });
    others.wait();
    EXPECT_EQ(ran, 50);
    stop = true;
    hogs.wait();
  });
}

// An object of its own: that of the runtime changes whenever sysmon takes a P, for example this test's.
TEST(EarlyHandoff, ComesLaterAfterAUselessOne) {
  run_with(1, [] {
    const rt::Sched& sched = *rt::active();
    const auto slices = std::make_unique<rt::Slices>();
    const std::int64_t first = sched.slice.early_ns;
    EXPECT_EQ(slices->early_ns(sched), first);
    slices->came_back(sched, 6'000'000, 5'000'000);
    slices->came_back(sched, 20'000'000, 200'000);
    EXPECT_EQ(slices->early_ns(sched), first);
    for (int i = 0; i < 100; ++i) slices->came_back(sched, 300'000, 200'000);
    EXPECT_GT(slices->early_ns(sched), 2 * first);
    EXPECT_LE(slices->early_ns(sched), std::min(4 * first, sched.slice.slice_ns));
  });
}

#if !defined(TUZA_TSAN)  // whose goroutines come back so late that handoffs seldom are useful
TEST(EarlyHandoff, ComesEarlierAfterAUsefulOne) {
  run_with(1, [] {
    rt::Sched& sched = *rt::active();
    rt::Slices& slices = sched.sysmon.slices();
    for (int i = 0; i < 100; ++i) slices.came_back(sched, 300'000, 200'000);
    // Each round causes handoffs.
    std::vector<std::unique_ptr<testing::Hogs>> hogs;
    while (slices.early_ns(sched) > 2 * sched.slice.early_ns) {
      hogs.push_back(std::make_unique<testing::Hogs>(8));
      sleep_for(50ms);
    }
  });
}
#endif

TEST_P(SlicesTest, OthersRunWhileThreadsBlockInTheKernel) {
  run_with(GetParam(), [] {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    std::atomic<int> begun = 0;
    WaitGroup readers;
    for (int i = 0; i < 8; ++i) {
      readers.go([&] {
        char c = 0;
        ++begun;
        EXPECT_EQ(::read(ends[0], &c, 1), 1);
      });
    }
    testing::wait_for([&begun] { return begun == 8; });
    EXPECT_EQ(::write(ends[1], "12345678", 8), 8);
    readers.wait();
    ::close(ends[0]);
    ::close(ends[1]);
  });
}

TEST_P(SlicesTest, ABlockingCallKeepsItsPIfItIsShort) {
  run_with(GetParam(), [] {
    for (int i = 0; i < scaled(100'000); ++i) {
      EXPECT_EQ(blocking([i] { return i; }), i);
    }
  });
}

void call_each_other(CallLength length) {
  constexpr int kCalls = 20;
  std::atomic<int> inside = 0;
  WaitGroup group;
  for (int i = 0; i < kCalls; ++i) {
    group.go([&inside, length] {
      blocking(length, [&inside] {
        ++inside;
        while (inside < kCalls) ::usleep(100);  // each waits for all others
      });
    });
  }
  group.wait();
}

TEST_P(SlicesTest, LongBlockingCallsRunAtOnce) {
  run_with(GetParam(), [] { call_each_other(CallLength::kLong); });
}

TEST_P(SlicesTest, BlockingCallsOfUnknownLengthLetOthersIn) {
  run_with(GetParam(), [] { call_each_other(CallLength::kUnknown); });
}

// Sysmon may find them inside the runtime at every scan.
TEST_P(SlicesTest, LoopsOfCallsThatDoNotParkGiveTheirPsAway) {
  run_with(GetParam(), [] {
    std::atomic<bool> stop = false;
    WaitGroup hogs;
    const int count = max_procs() * 2;
    for (int i = 0; i < count; ++i) {
      hogs.go([&stop] {
        while (!stop.load(std::memory_order_relaxed)) (void)sched_stats();
      });
    }
    testing::wait_for([count] { return sched_stats().lane >= static_cast<std::uint32_t>(count); });
    stop = true;
    hogs.wait();
  });
}

// The goroutine's P is surplus, and the only remaining P is idle: the runtime looks as if nothing were
// running.
TEST(Slices, WhatAGoroutineOnASurplusPStartsRuns) {
  run_with(2, [] {
    bool done = false;
    while (!done) {
      std::atomic<bool> chosen = false;
      WaitGroup group;
      for (int i = 0; i < 2; ++i) {
        group.go([&] {
          for (std::atomic<int> work = 0; work < 2'000'000; ++work) {
          }
          for (int k = 0; k < scaled(20'000); ++k) yield();  // its P learns that goroutines are short
          if (testing::own_p() != 1 || chosen.exchange(true)) return;
          set_max_procs(1);
          std::atomic<bool> ran = false;
          group.go([&ran] { ran = true; });
          burn_until(ran);
          done = true;
        });
      }
      group.wait();
    }
  });
}

}  // namespace
}  // namespace tuza
