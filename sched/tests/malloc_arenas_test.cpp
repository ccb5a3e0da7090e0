// One malloc arena for each M. Not built with sanitizers, which have allocators of their own.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <tuza/sched/go.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/sync/barrier.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

namespace tuza::testing {
namespace {

// glibc's HEAP_MAX_SIZE: the heaps of each arena but the first have this size and alignment.
constexpr std::uintptr_t kHeapBytes = std::uintptr_t{64} << 20;

// Runs more threads at once than glibc has arenas; returns how many arenas gave them a block.
std::size_t arenas_of_many_threads(unsigned threads) {
  std::set<std::uintptr_t> heaps;
  run_with(2, [&] {
    std::mutex mutex;
    Barrier all(static_cast<int>(threads));
    WaitGroup done;
    for (unsigned i = 0; i < threads; ++i) {
      done.go([&] {
        lock_os_thread();
        void* block = std::malloc(24);
        all.arrive_and_wait();
        {
          const std::scoped_lock lock(mutex);
          heaps.insert(reinterpret_cast<std::uintptr_t>(block) / kHeapBytes);
        }
        std::free(block);
        unlock_os_thread();
      });
    }
    done.wait();
  });
  return heaps.size();
}

unsigned more_than_there_are_arenas() { return 8 * std::thread::hardware_concurrency() + 24; }

TEST(MallocArenas, EachThreadHasItsOwn) {
  const unsigned threads = more_than_there_are_arenas();
  EXPECT_EQ(arenas_of_many_threads(threads), threads);
}

TEST(MallocArenas, WhatIsAllocatedAndFreedAllTheTimeIsNotGivenBackToTheKernel) {
  run_with(1, [] {
    lock_os_thread();
    const auto faults = [] {
      struct rusage usage{};
      getrusage(RUSAGE_THREAD, &usage);
      return usage.ru_minflt;
    };
    std::array<void*, 48> blocks;
    const auto use = [&blocks] {
      for (void*& block : blocks) std::memset(block = std::malloc(4000), 1, 4000);
      for (void* block : blocks) std::free(block);
    };
    use();
    const long before = faults();
    for (int i = 0; i < 100; ++i) use();
    EXPECT_LT(faults() - before, 100);
    unlock_os_thread();
  });
}

// In processes of their own: glibc reads the limit only once.
TEST(MallocArenasDeathTest, ALimitOfTheUserStays) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("MALLOC_ARENA_MAX", "1", 1);  // too late for glibc, which keeps its default limit
        const std::size_t arenas = arenas_of_many_threads(more_than_there_are_arenas());
        std::_Exit(arenas <= 8 * std::thread::hardware_concurrency() + 1 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

// A thread's first malloc() reserved 64 MiB, which the next stack then lacked.
TEST(MallocArenasDeathTest, LeaveRoomForStacksWhereAddressSpaceIsLimited) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        struct rlimit limit{};
        limit.rlim_cur = rlim_t{1} << 30;
        limit.rlim_max = RLIM_INFINITY;
        if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(3);
        const std::size_t arenas = arenas_of_many_threads(more_than_there_are_arenas());
        // And the first one, which is no heap.
        std::_Exit(arenas <= limit.rlim_cur / 4 / kHeapBytes + 1 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace tuza::testing
