// The stacks of goroutines that wait for long: what is given back of them, and what is not.
#include <sys/mman.h>
#include <tuza/sched/go.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/memory/idle_stacks.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/sync/semaphore.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/hogs.h>
#include <tuza/sched/time/sleep.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using testing::compute;
using testing::run_with;
using testing::scaled;
using testing::wait_for;

// Touches `bytes` of stack below the caller's frame.
TUZA_NOIPA void go_deep(std::size_t bytes) {
  char block[1024];
  std::memset(block, 7, sizeof block);
  if (bytes > sizeof block) go_deep(bytes - sizeof block);
  compute(static_cast<std::uint64_t>(block[5]), 1);
}

std::size_t resident_pages(const rt::Stack& stack) {
  const std::uintptr_t low = (stack.low + 4095) & ~std::uintptr_t{4095};
  std::vector<unsigned char> pages((stack.top - low + 4095) / 4096);
  EXPECT_EQ(::mincore(reinterpret_cast<void*>(low), stack.top - low, pages.data()), 0);
  return static_cast<std::size_t>(
      std::count_if(pages.begin(), pages.end(), [](auto page) { return page & 1; }));
}

TEST(IdleStacks, WhatLiesBelowALongWaitIsGivenBackOnceAndNothingElse) {
  run_with(2, [] {
    constexpr std::size_t kDeep = 40 << 10;
    std::atomic<rt::G*> waiter = nullptr;
    Semaphore wakes(0);
    WaitGroup group;
    group.go([&] {
      std::array<std::uint64_t, 64> kept{};
      for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = compute(i, 10);
      for (int round = 0; round < 2; ++round) {
        go_deep(kDeep);
        const rt::NothingBelow trim_while_parked;
        waiter = rt::current_m()->current.get();
        wakes.acquire();
        for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(kept[i], compute(i, 10));
      }
    });
    rt::IdleStacks trimmer;
    for (int round = 0; round < 2; ++round) {
      wait_for([&waiter] { return waiter != nullptr; });
      const rt::G& g = *waiter.exchange(nullptr);
      wait_for([&g] { return g.status == rt::GStatus::kWaiting; });
      const std::size_t before = resident_pages(g.stack);
      EXPECT_GE(before, kDeep / 4096);
      trimmer.trim_some(*rt::active(), rt::now_ns());
      EXPECT_EQ(resident_pages(g.stack), before) << "it has not waited for long";
      trimmer.trim_some(*rt::active(), rt::now_ns(), 0);
      EXPECT_LE(resident_pages(g.stack), before - kDeep / 4096 + 2);
      EXPECT_GE(resident_pages(g.stack), 1u);
      EXPECT_EQ(g.status, rt::GStatus::kWaiting);
      sleep_for(5ms);  // waits are told apart by their start times
      wakes.release();
    }
    group.wait();
  });
}

// The runtime does not know what the program's frames keep below the stack pointer.
TEST(IdleStacks, AreKeptUnlessTheGoroutineSaysThatNothingLiesBelow) {
  run_with(2, [] {
    constexpr std::size_t kDeep = 40 << 10;
    Semaphore wakes(0);
    std::atomic<rt::G*> waiter = nullptr;
    WaitGroup group;
    group.go([&] {
      go_deep(kDeep);
      {
        const rt::NothingBelow until_here;
      }
      waiter = rt::current_m()->current.get();
      wakes.acquire();
    });
    wait_for([&waiter] { return waiter != nullptr && waiter.load()->status == rt::GStatus::kWaiting; });
    const std::size_t before = resident_pages(waiter.load()->stack);
    EXPECT_GE(before, kDeep / 4096);
    rt::IdleStacks().trim_some(*rt::active(), rt::now_ns(), 0);
    EXPECT_EQ(resident_pages(waiter.load()->stack), before);
    wakes.release();
    group.wait();
  });
}

#if !defined(TUZA_ASAN) && !defined(TUZA_TSAN)  // which report the switch of stacks as a wild jump

Semaphore* g_wakes_inner = nullptr;
ucontext_t g_outer, g_inner;
void park_on_the_inner_stack() { g_wakes_inner->acquire(); }

// Parks on a stack that is an array in this frame. Returns how many of the surrounding words have changed.
[[gnu::noinline]] int park_in_an_array() {
  alignas(16) char stack[96 << 10];
  std::memset(stack, 1, sizeof stack);
  getcontext(&g_inner);
  g_inner.uc_stack.ss_sp = stack;
  g_inner.uc_stack.ss_size = sizeof stack;
  g_inner.uc_link = &g_outer;
  makecontext(&g_inner, &park_on_the_inner_stack, 0);
  volatile int words[4096];  // below the array
  for (int i = 0; i < 4096; ++i) words[i] = i;
  swapcontext(&g_outer, &g_inner);
  int changed = 0;
  for (int i = 0; i < 4096; ++i) changed += words[i] != i ? 1 : 0;
  for (std::size_t i = 0; i < sizeof stack / 2; ++i)
    changed += stack[i] != 1 ? 1 : 0;  // its own frames use the upper half
  return changed;
}

// A coroutine or fiber whose stack lies on the goroutine's stack: the frames that resumed it are below its
// stack pointer. The runtime used to give these frames back after ten seconds.
TEST(IdleStacks, FramesBelowAStackThatLiesOnTheGoroutinesAreKept) {
  run_with(2, [] {
    Semaphore wakes(0);
    g_wakes_inner = &wakes;
    std::atomic<rt::G*> waiter = nullptr;
    std::atomic<int> changed = -1;
    WaitGroup group;
    group.go([&] {
      waiter = rt::current_m()->current.get();
      changed = park_in_an_array();
    });
    wait_for([&waiter] { return waiter != nullptr && waiter.load()->status == rt::GStatus::kWaiting; });
    rt::IdleStacks trimmer;
    while (!trimmer.trim_some(*rt::active(), rt::now_ns() + 2 * rt::IdleStacks::kAfterNs)) {
    }
    wakes.release();
    group.wait();
    EXPECT_EQ(changed, 0);
  });
}

#endif

// Wakers and the deadlock detector find goroutines whose stacks are being trimmed.
TEST(IdleStacks, TheyMayBeWokenMeanwhile) {
  run_with(2, [] {
    std::atomic<bool> stop = false;
    std::thread trimmer([&stop, sched = rt::active()] {
      for (rt::IdleStacks stacks; !stop;) stacks.trim_some(*sched, rt::now_ns(), 0);
    });
    std::vector<std::unique_ptr<Semaphore>> turns;
    for (int i = 0; i < 16; ++i) turns.push_back(std::make_unique<Semaphore>(i % 4 == 0 ? 1 : 0));
    WaitGroup ring;
    std::atomic<int> rounds = 0;
    for (std::size_t i = 0; i < turns.size(); ++i) {
      ring.go([&, i] {
        const rt::NothingBelow trim_while_parked;
        for (int k = 0; k < scaled(2000); ++k) {
          turns[i]->acquire();
          if (k % 64 == 0) go_deep(20 << 10);
          ++rounds;
          turns[(i + 1) % turns.size()]->release();
        }
      });
    }
    ring.wait();
    EXPECT_EQ(rounds, scaled(2000) * 16);
    stop = true;
    trimmer.join();
  });
}

}  // namespace
}  // namespace tuza
