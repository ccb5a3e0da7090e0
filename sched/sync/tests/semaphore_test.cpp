// Semaphore: never more permits than exist, first come first served, weighted.
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/semaphore.h>
#include <tuza/sched/sync/tests/locks_testing.h>
#include <tuza/sched/sync/wait_group.h>

#include <memory>

namespace tuza {
namespace {

using namespace testing;

class SemaphoreTest : public WithProcs {};
TUZA_WITH_PROCS(SemaphoreTest);

TEST_P(SemaphoreTest, NeverGivesMoreThanItHas) {
  run_with(GetParam(), [] {
    constexpr std::int64_t kPermits = 10;
    Semaphore semaphore(kPermits);
    std::atomic<std::int64_t> used = 0;
    const int rounds = scaled(2'000);
    {
      Threads threads;
      WaitGroup group;
      const auto work = [&](std::int64_t weight) {
        for (int i = 0; i < rounds; ++i) {
          if (i % 5 != 0 || !semaphore.try_acquire(weight)) semaphore.acquire(weight);
          EXPECT_LE(used += weight, kPermits);
          if (i % 8 == 0 && goroutine_id() != 0) yield();
          used -= weight;
          semaphore.release(weight);
        }
      };
      for (const std::int64_t weight : {1, 3, 7, 10}) {
        threads.start([&work, weight] { work(weight); });
        group.go([&work, weight] { work(weight); });
      }
      group.wait();
    }
    EXPECT_TRUE(semaphore.try_acquire(kPermits));
    EXPECT_FALSE(semaphore.try_acquire());
    semaphore.release(kPermits);
  });
}

TEST_P(SemaphoreTest, HandsOverWhatWasDoneBeforeRelease) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(2'000); ++round) {
      auto semaphore = std::make_unique<Semaphore>(0);
      int written = 0;
      go([&] {
        written = 1;
        semaphore->release();
      });
      semaphore->acquire();
      EXPECT_EQ(written, 1);
      semaphore.reset();  // ASan sees a release() that still touches it
    }
  });
}

TEST_P(SemaphoreTest, ALargeRequestIsNotOvertakenBySmallOnes) {
  run_with(GetParam(), [] {
    Semaphore semaphore(2);
    std::atomic<bool> large = false;
    WaitGroup group;
    semaphore.acquire();
    group.go([&] {
      semaphore.acquire(2);
      large = true;
      semaphore.release(2);
    });
    yield_until([&] {  // once it waits, the free permit is not available to others
      if (!semaphore.try_acquire()) return true;
      semaphore.release();
      return false;
    });
    group.go([&] {
      semaphore.acquire();
      EXPECT_TRUE(large);
      semaphore.release();
    });
    for (int i = 0; i < 10; ++i) yield();
    EXPECT_FALSE(large);
    semaphore.release();
    group.wait();
  });
}

TEST_P(SemaphoreTest, ALargeRequestThatGivesUpLetsSmallOnesPass) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(500); ++round) {
      Semaphore semaphore(2);
      auto [ctx, cancel] = with_cancel(Context());
      WaitGroup group;
      semaphore.acquire();
      group.go([&, &ctx = ctx] { EXPECT_FALSE(semaphore.acquire(ctx, 2)); });
      yield_until([&] {
        if (!semaphore.try_acquire()) return true;
        semaphore.release();
        return false;
      });
      group.go([&] { semaphore.acquire(); });
      cancel();
      group.wait();
      EXPECT_FALSE(semaphore.try_acquire());
      semaphore.release(2);
      EXPECT_TRUE(semaphore.try_acquire(2));
    }
  });
}

TEST_P(SemaphoreTest, OneReleaseServesEveryWaiterItCanSatisfy) {
  run_with(GetParam(), [] {
    Semaphore semaphore(0);
    WaitGroup group;
    for (const std::int64_t weight : {1, 2, 3, 4}) {
      group.go([&semaphore, weight] { semaphore.acquire(weight); });
    }
    for (int i = 0; i < 10; ++i) yield();
    semaphore.release(10);
    group.wait();
    EXPECT_FALSE(semaphore.try_acquire());
    EXPECT_TRUE(semaphore.try_acquire(0));
  });
}

TEST_P(SemaphoreTest, NoPermitIsLostWhenWaitersGiveUp) {
  run_with(GetParam(), [] {
    Semaphore semaphore(3);
    const int rounds = scaled(1'000);
    WaitGroup group;
    for (int g = 0; g < 6; ++g) {
      group.go([&, g] {
        for (int i = 0; i < rounds; ++i) {
          auto [ctx, cancel] = with_cancel(Context());
          WaitGroup canceller;
          if (i % 2 == 0) canceller.go([&cancel = cancel] { cancel(); });
          const std::int64_t weight = 1 + (g + i) % 3;
          if (semaphore.acquire(ctx, weight)) {
            if (i % 4 == 0) yield();
            semaphore.release(weight);
          }
          canceller.wait();
        }
      });
    }
    group.wait();
    EXPECT_TRUE(semaphore.try_acquire(3));
    EXPECT_FALSE(semaphore.try_acquire(1));
  });
}

}  // namespace
}  // namespace tuza
