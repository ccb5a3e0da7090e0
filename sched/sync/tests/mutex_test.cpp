// Mutex: exclusion, both modes, giving up, lifetime. Histories are in lock_history_test.cpp, misuse in
// misuse_test.cpp.
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/tests/locks_testing.h>
#include <tuza/sched/sync/wait_group.h>

#include <algorithm>
#include <memory>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using namespace testing;

class MutexTest : public WithProcs {};
TUZA_WITH_PROCS(MutexTest);

TEST_P(MutexTest, Excludes) {
  run_with(GetParam(), [] {
    Mutex mutex;
    std::int64_t counter = 0;  // a plain integer: TSan checks the ordering
    const int rounds = scaled(2'000);
    WaitGroup group;
    for (int g = 0; g < 16; ++g) {
      group.go([&] {
        for (int i = 0; i < rounds; ++i) {
          const std::scoped_lock lock(mutex);
          const std::int64_t seen = counter;
          if (i % 7 == 0) yield();  // held across a park
          counter = seen + 1;
        }
      });
    }
    group.wait();
    EXPECT_EQ(counter, 16 * rounds);
    EXPECT_TRUE(MutexInspector::untouched(mutex));
  });
}

TEST_P(MutexTest, ExcludesThreadsAndGoroutinesFromEachOther) {
  run_with(GetParam(), [] {
    Mutex mutex;
    std::int64_t counter = 0;
    const int rounds = scaled(20'000);
    {
      Threads threads;
      WaitGroup group;
      for (int i = 0; i < 3; ++i) {
        const auto work = [&] {
          for (int n = 0; n < rounds; ++n) {
            const std::scoped_lock lock(mutex);
            ++counter;
          }
        };
        threads.start(work);
        group.go(work);
      }
      group.wait();
    }
    EXPECT_EQ(counter, 6 * rounds);
    EXPECT_TRUE(MutexInspector::untouched(mutex));
  });
}

TEST(Mutex, NeedsNoRuntimeForThreads) {
  Mutex mutex;
  int counter = 0;
  const int rounds = scaled(20'000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        const std::scoped_lock lock(mutex);
        ++counter;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter, 4 * rounds);
}

TEST_P(MutexTest, TryLockNeverWaits) {
  run_with(GetParam(), [] {
    Mutex mutex;
    EXPECT_TRUE(mutex.try_lock());
    EXPECT_FALSE(mutex.try_lock());
    mutex.unlock();
    EXPECT_TRUE(mutex.try_lock());
    mutex.unlock();
  });
}

TEST_P(MutexTest, MayBeUnlockedByAnotherGoroutineOrThread) {
  run_with(GetParam(), [] {
    Mutex mutex;
    mutex.lock();
    WaitGroup group;
    group.go([&mutex] { mutex.unlock(); });
    mutex.lock();
    group.wait();
    std::thread thread([&mutex, promise = ExternalWaker()] { mutex.unlock(); });
    mutex.lock();
    mutex.unlock();
    thread.join();
  });
}

TEST_P(MutexTest, WorksWithTheLocksOfTheLibrary) {
  run_with(GetParam(), [] {
    Mutex a, b;
    {
      const std::scoped_lock both(a, b);
      EXPECT_FALSE(a.try_lock());
      EXPECT_FALSE(b.try_lock());
    }
    std::unique_lock lock(a, std::defer_lock);
    EXPECT_TRUE(lock.try_lock_for(1h));
    WaitGroup group;
    group.go([&] {
      std::unique_lock late(a, std::defer_lock);
      EXPECT_FALSE(late.try_lock_for(1ms));
      EXPECT_FALSE(late.try_lock_for(-1h));
      EXPECT_FALSE(late.try_lock_until(std::chrono::steady_clock::now() + 1ms));
    });
    group.wait();
    lock.unlock();
    EXPECT_TRUE(MutexInspector::untouched(a));
  });
}

// -- Order.

// Long enough for waiters to starve.
void let_them_starve() {
  const auto end = std::chrono::steady_clock::now() + 2 * std::chrono::nanoseconds(Mutex::kStarvingNs);
  while (std::chrono::steady_clock::now() < end) {
  }
}

// A mutex that the caller holds, with waiters that have starved. Each notes its turn in `order`.
struct StarvedMutex {
  explicit StarvedMutex(int waiters) {
    mutex.lock();
    for (int i = 0; i < waiters; ++i) {
      group.go([this, i] {
        const std::scoped_lock lock(mutex);
        order.push_back(i);
      });
      yield_until([&] { return MutexInspector::waiters(mutex) == i + 1; });
    }
    let_them_starve();
  }

  Mutex mutex;
  std::vector<int> order;  // guarded by mutex
  WaitGroup group;
};

// The hog requests the lock again as soon as it has released it. Whatever the hog does, the waiters get the
// lock in the order in which they came; once the mutex is starving, the hog gets it only after one of them.
TEST_P(MutexTest, OnceItStarvesNobodyOvertakes) {
  run_with(GetParam(), [] {
    constexpr int kWaiters = 8;
    StarvedMutex starved(kWaiters);
    auto& [mutex, order, group] = starved;
    while (order.size() < kWaiters) {
      const std::size_t before = order.size();
      const bool starving = MutexInspector::starving(mutex);
      mutex.unlock();
      mutex.lock();
      if (starving) {
        EXPECT_GT(order.size(), before);
      }
    }
    mutex.unlock();
    group.wait();
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
    EXPECT_TRUE(MutexInspector::untouched(mutex));
  });
}

// The first waiter is woken, finds the lock taken again, and keeps its place. It has waited for too long by then, so
// the next unlock hands the lock over. (The chaos build may let a waiter in at any time.)
TEST(MutexOrder, AWaiterThatIsOvertakenIsHandedTheLock) {
  const LongSlices long_slices;
  run_with(1, [] {
    constexpr int kWaiters = 3;
    StarvedMutex starved(kWaiters);
    auto& [mutex, order, group] = starved;
    mutex.unlock();
    mutex.lock();  // before the waiter that was woken
    yield_until([&] { return MutexInspector::waiters(mutex) + static_cast<int>(order.size()) == kWaiters; });
    if (!kChaos) {
      EXPECT_TRUE(order.empty());
      EXPECT_TRUE(MutexInspector::starving(mutex));
    }
    mutex.unlock();
    if (!kChaos) {
      EXPECT_FALSE(mutex.try_lock());
    }
    group.wait();
    EXPECT_TRUE(kChaos || std::is_sorted(order.begin(), order.end()));
  });
}

// A goroutine that holds the lock nearly all the time still yields it to others; when it sees the mutex
// starving, it gets the lock only after one of them.
TEST_P(MutexTest, AHogLetsOthersIn) {
  run_with(GetParam(), [] {
    Mutex mutex;
    std::atomic<bool> stop = false;
    int others = 0;  // guarded by mutex
    WaitGroup group;
    group.go([&] {
      while (!stop) {
        mutex.lock();
        const int before = others;
        const auto end = std::chrono::steady_clock::now() + 50us;
        while (std::chrono::steady_clock::now() < end) {
        }
        const bool starving = MutexInspector::starving(mutex);
        mutex.unlock();
        if (!starving) continue;
        mutex.lock();
        EXPECT_GT(others, before);
        mutex.unlock();
      }
    });
    for (int i = 0; i < 10; ++i) {
      mutex.lock();
      ++others;
      mutex.unlock();
      yield();
    }
    stop = true;
    group.wait();
  });
}

TEST_P(MutexTest, StarvingEndsWithTheLastWaiter) {
  run_with(GetParam(), [] {
    Mutex mutex;
    for (int round = 0; round < scaled(20) + 2; ++round) {
      mutex.lock();
      WaitGroup group;
      for (int i = 0; i < 4; ++i) {
        group.go([&] {
          mutex.lock();
          mutex.unlock();
        });
      }
      yield_until([&] { return MutexInspector::waiters(mutex) == 4; });
      let_them_starve();
      mutex.unlock();
      group.wait();
      EXPECT_TRUE(MutexInspector::untouched(mutex));
    }
  });
}

// -- Giving up.

TEST_P(MutexTest, AContextEndsTheWaitAndNothingElse) {
  run_with(GetParam(), [] {
    Mutex mutex;
    for (int round = 0; round < scaled(500); ++round) {
      auto [ctx, cancel] = with_cancel(Context());
      mutex.lock();
      WaitGroup group;
      int got = 0;  // guarded by mutex
      for (int i = 0; i < 3; ++i) {
        group.go([&, &ctx = ctx] {
          const Result<void> locked = mutex.lock(ctx);
          ASSERT_FALSE(locked);
          EXPECT_TRUE(locked.error().cancelled());
        });
        group.go([&] {
          const std::scoped_lock lock(mutex);
          ++got;
        });
      }
      if (round % 2 == 0) yield_until([&] { return MutexInspector::waiters(mutex) == 6; });
      cancel();
      // All three have given up before the lock is free; otherwise they might get it.
      yield_until([&] { return num_goroutine() <= 4; });
      mutex.unlock();
      group.wait();
      EXPECT_EQ(got, 3);
      EXPECT_TRUE(MutexInspector::untouched(mutex));
    }
  });
}

TEST_P(MutexTest, AnEndedContextGetsNoLock) {
  run_with(GetParam(), [] {
    Mutex mutex;
    auto [ctx, cancel] = with_cancel(Context());
    EXPECT_TRUE(mutex.lock(ctx));
    mutex.unlock();
    EXPECT_TRUE(mutex.lock(Context()));
    mutex.unlock();
    cancel();
    EXPECT_FALSE(mutex.lock(ctx));
    EXPECT_TRUE(mutex.try_lock());
    mutex.unlock();
  });
}

// Some wait for ever, some briefly, some until their context ends; the lock must work the same for all.
TEST_P(MutexTest, NoLockIsLostWhenWaitersGiveUp) {
  run_with(GetParam(), [] {
    Mutex mutex;
    int counter = 0;  // guarded by mutex
    std::atomic<int> got = 0;
    const int rounds = scaled(1'000);
    WaitGroup group;
    for (int g = 0; g < 4; ++g) {
      group.go([&] {
        for (int i = 0; i < rounds; ++i) {
          auto [ctx, cancel] = with_cancel(Context());
          WaitGroup canceller;
          if (i % 2 == 0) canceller.go([&cancel = cancel] { cancel(); });
          if (mutex.lock(ctx)) {
            ++counter;
            ++got;
            if (i % 16 == 0) yield();
            mutex.unlock();
          }
          canceller.wait();
        }
      });
      group.go([&] {
        for (int i = 0; i < rounds; ++i) {
          if (!mutex.try_lock_for(std::chrono::microseconds(i % 50))) continue;
          ++counter;
          ++got;
          if (i % 16 == 0) yield();
          mutex.unlock();
        }
      });
      group.go([&] {
        for (int i = 0; i < rounds; ++i) {
          const std::scoped_lock lock(mutex);
          ++counter;
          ++got;
        }
      });
    }
    group.wait();
    EXPECT_EQ(counter, got.load());
    EXPECT_TRUE(MutexInspector::untouched(mutex));
  });
}

// -- Lifetime.

// The last goroutine to leave destroys the mutex, while the others' unlock() may still be returning. ASan
// reports any access after that.
TEST_P(MutexTest, MayBeDestroyedByTheLastOneToHaveIt) {
  run_with(GetParam(), [] {
    struct Shared {
      Mutex mutex;
      int users = 3;
    };
    for (int round = 0; round < scaled(5'000); ++round) {
      auto* shared = new Shared;
      WaitGroup group;
      for (int i = 0; i < 3; ++i) {
        group.go([shared, i, round] {
          if (i == 0 && !shared->mutex.try_lock_for(std::chrono::microseconds(round % 3)))
            shared->mutex.lock();
          if (i != 0) shared->mutex.lock();
          const bool last = --shared->users == 0;
          if (round % 5 == 0) yield();
          shared->mutex.unlock();
          if (last) delete shared;
        });
      }
      group.wait();
    }
  });
}

}  // namespace
}  // namespace tuza
