// A goroutine that runs for long delays others by no more than a slice.
#include <tuza/sched/blocking.h>
#include <tuza/sched/go.h>
#include <tuza/sched/preempt.h>
#include <tuza/sched/rt/enter.h>
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
    WaitGroup hogs;
    for (int i = 0; i < 8; ++i) hogs.go([&stop] { burn_until(stop); });
    for (int i = 0; i < 20; ++i) sleep_for(1ms);
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

// The runtime belongs to this test, but sysmon takes Ps meanwhile: that only makes handoffs come earlier.
TEST(EarlyHandoff, ComesLaterAfterAUselessOneAndEarlierAfterAUsefulOne) {
  run_with(1, [] {
    rt::Sched& sched = *rt::active();
    rt::Slices& slices = sched.sysmon.slices();
    const std::int64_t first = sched.slice.early_ns;
    EXPECT_EQ(slices.early_ns(sched), first);
    slices.came_back(sched, 6'000'000, 5'000'000);
    slices.came_back(sched, 20'000'000, 200'000);
    EXPECT_EQ(slices.early_ns(sched), first);
    for (int i = 0; i < 100; ++i) slices.came_back(sched, 300'000, 200'000);
    const std::int64_t last = slices.early_ns(sched);
    EXPECT_GT(last, 2 * first);
    EXPECT_LE(last, std::min(4 * first, sched.slice.slice_ns));
    // Each round causes handoffs.
    std::vector<std::unique_ptr<testing::Hogs>> hogs;
    while (slices.early_ns(sched) > last / 2) {
      hogs.push_back(std::make_unique<testing::Hogs>(8));
      sleep_for(50ms);
    }
  });
}

TEST_P(SlicesTest, OthersRunWhileThreadsBlockInTheKernel) {
  run_with(GetParam(), [] {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    WaitGroup readers;
    for (int i = 0; i < 8; ++i) {
      readers.go([&ends] {
        char c = 0;
        EXPECT_EQ(::read(ends[0], &c, 1), 1);
      });
    }
    for (int i = 0; i < 5; ++i) sleep_for(1ms);
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

TEST_P(SlicesTest, LongBlockingCallsRunAtOnce) {
  run_with(GetParam(), [] {
    constexpr int kCalls = 20;
    std::atomic<int> inside = 0;
    WaitGroup group;
    for (int i = 0; i < kCalls; ++i) {
      group.go([&inside] {
        blocking(CallLength::kLong, [&inside] {
          ++inside;
          while (inside < kCalls) ::usleep(100);  // each waits for all others
        });
      });
    }
    group.wait();
  });
}

TEST_P(SlicesTest, BlockingCallsOfUnknownLengthLetOthersIn) {
  run_with(GetParam(), [] {
    constexpr int kCalls = 20;
    std::atomic<int> inside = 0;
    WaitGroup group;
    for (int i = 0; i < kCalls; ++i) {
      group.go([&inside] {
        blocking([&inside] {
          ++inside;
          while (inside < kCalls) ::usleep(100);
        });
      });
    }
    group.wait();
  });
}

// Sysmon may find them inside the runtime at every scan.
TEST_P(SlicesTest, LoopsOfCallsThatDoNotParkGiveTheirPsAway) {
  run_with(GetParam(), [] {
    std::atomic<bool> stop = false;
    std::atomic<int> without_p = 0;
    WaitGroup hogs;
    for (int i = 0; i < max_procs() * 2; ++i) {
      hogs.go([&] {
        for (bool had_one = true; !stop.load(std::memory_order_relaxed);) {
          const rt::Enter rt;
          if (rt.p() == nullptr && std::exchange(had_one, false)) ++without_p;
        }
      });
    }
    while (without_p < max_procs() * 2) sleep_for(1ms);
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
          const auto p_number = [] {
            const rt::Enter rt;
            return rt.p() != nullptr ? rt.p()->id : -1;
          };
          if (p_number() != 1 || chosen.exchange(true)) return;
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
