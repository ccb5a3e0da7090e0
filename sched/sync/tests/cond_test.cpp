// Cond, Once, OnceValue, Barrier.
#include <tuza/sched/sync/barrier.h>
#include <tuza/sched/sync/cond.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/once.h>
#include <tuza/sched/sync/rw_mutex.h>
#include <tuza/sched/sync/semaphore.h>
#include <tuza/sched/sync/tests/locks_testing.h>
#include <tuza/sched/sync/wait_group.h>

#include <deque>
#include <memory>
#include <shared_mutex>
#include <stdexcept>
#include <string>

namespace tuza {
namespace {

using namespace testing;

class CondTest : public WithProcs {};
TUZA_WITH_PROCS(CondTest);

// A queue with room for two: every signal wakes a goroutine that can proceed, so a lost signal stops
// everything.
TEST_P(CondTest, NoSignalIsLost) {
  run_with(GetParam(), [] {
    Mutex mutex;
    Cond not_empty, not_full;
    std::deque<int> queue;
    std::int64_t sum = 0;
    const int items = scaled(4'000);
    const auto produce = [&] {
      for (int i = 1; i <= items; ++i) {
        std::unique_lock lock(mutex);
        not_full.wait(lock, [&] { return queue.size() < 2; });
        queue.push_back(i);
        if (i % 2 == 0) lock.unlock();
        not_empty.signal();
      }
    };
    const auto consume = [&] {
      for (int i = 1; i <= items; ++i) {
        std::unique_lock lock(mutex);
        while (queue.empty()) not_empty.wait(lock);
        sum += queue.front();
        queue.pop_front();
        not_full.notify_one();
      }
    };
    {
      Threads threads;
      WaitGroup group;
      for (int i = 0; i < 2; ++i) {
        group.go(produce);
        group.go(consume);
      }
      threads.start(produce);
      threads.start(consume);
      group.wait();
    }
    EXPECT_EQ(sum, 3 * (std::int64_t{items} * (items + 1) / 2));
  });
}

TEST_P(CondTest, SignalWakesTheOneThatHasWaitedLongest) {
  run_with(GetParam(), [] {
    Mutex mutex;
    Cond cond;
    std::vector<int> order;
    int waiting = 0;
    WaitGroup group;
    for (int i = 0; i < 5; ++i) {
      group.go([&, i] {
        const std::scoped_lock lock(mutex);
        ++waiting;
        cond.wait(mutex);  // a bare Mutex is a lock
        order.push_back(i);
      });
      yield_until([&] {
        const std::scoped_lock lock(mutex);
        return waiting == i + 1;
      });
    }
    for (std::size_t i = 0; i < 5; ++i) {
      cond.signal();
      yield_until([&] {
        const std::scoped_lock lock(mutex);
        return order.size() == i + 1;
      });
    }
    group.wait();
    EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
    cond.signal();  // no waiters: the signal has no effect, now or later
  });
}

TEST_P(CondTest, BroadcastWakesAllOfBothLocks) {
  run_with(GetParam(), [] {
    RWMutex mutex;
    Cond cond;
    bool ready = false;
    WaitGroup group;
    for (int i = 0; i < 4; ++i) {
      group.go([&] {
        std::shared_lock lock(mutex);
        cond.wait(lock, [&] { return ready; });
      });
      group.go([&] {
        std::unique_lock lock(mutex);
        cond.wait(lock, [&] { return ready; });
      });
    }
    yield();
    {
      const std::scoped_lock lock(mutex);
      ready = true;
      cond.notify_all();
    }
    group.wait();
  });
}

TEST_P(CondTest, AContextEndsTheWaitWithTheLockHeld) {
  run_with(GetParam(), [] {
    Mutex mutex;
    Cond cond;
    for (int round = 0; round < scaled(500); ++round) {
      auto [ctx, cancel] = with_cancel(Context());
      int inside = 0;
      WaitGroup group;
      for (int i = 0; i < 3; ++i) {
        group.go([&, &ctx = ctx] {
          std::unique_lock lock(mutex);
          const Result<void> done = cond.wait(ctx, lock, [] { return false; });
          EXPECT_TRUE(!done && done.error().cancelled());
          EXPECT_TRUE(lock.owns_lock());
          ++inside;
        });
      }
      if (round % 2 == 0) cond.broadcast();
      cancel();
      group.wait();
      EXPECT_EQ(inside, 3);
      std::unique_lock lock(mutex);
      EXPECT_FALSE(cond.wait(ctx, lock));
      EXPECT_TRUE(cond.wait(ctx, lock, [] { return true; }));
    }
  });
}

// A signal wakes the waiter it was meant for; if that waiter has given up, the signal goes to the next. There
// are as many signals as waiters without a context, and waiters with a context must use up none of them.
TEST_P(CondTest, ASignalIsNotUsedUpByOneThatGivesUp) {
  run_with(GetParam(), [] {
    Mutex mutex;
    Cond cond;
    for (int round = 0; round < scaled(1'000); ++round) {
      auto [ctx, cancel] = with_cancel(Context());
      int waiting = 0, woken = 0;
      bool stays = false;
      WaitGroup group;
      group.go([&, &ctx = ctx] {
        std::unique_lock lock(mutex);
        ++waiting;
        if (cond.wait(ctx, lock)) ++woken;
      });
      group.go([&] {
        std::unique_lock lock(mutex);
        ++waiting;
        cond.wait(lock);
        stays = true;
      });
      const auto locked = [&](auto&& condition) {
        const std::scoped_lock lock(mutex);
        return condition();
      };
      yield_until([&] { return locked([&] { return waiting == 2; }); });
      WaitGroup canceller;
      canceller.go([&cancel = cancel] { cancel(); });
      cond.signal();
      canceller.wait();
      yield_until([&] { return locked([&] { return woken == 1 || stays; }); });
      EXPECT_FALSE(woken == 1 && stays);
      cond.signal();
      group.wait();
      EXPECT_TRUE(stays);
    }
  });
}

TEST_P(CondTest, AnUnlockThatThrowsLeavesNobodyInTheQueue) {
  run_with(GetParam(), [] {
    Mutex mutex;
    Cond cond;
    std::unique_lock lock(mutex, std::defer_lock);
    EXPECT_THROW(cond.wait(lock), std::system_error);  // not locked
    cond.broadcast();
    EXPECT_TRUE(MutexInspector::untouched(mutex));
  });
}

class OnceTest : public WithProcs {};
TUZA_WITH_PROCS(OnceTest);

TEST_P(OnceTest, RunsOnceAndTheOthersWaitForIt) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(300); ++round) {
      Once once;
      int made = 0;
      {
        Threads threads;
        WaitGroup group;
        const auto call = [&] {
          once.call([&] {
            if (goroutine_id() != 0) yield();
            ++made;
          });
          EXPECT_EQ(made, 1);
        };
        if (round % 10 == 0) threads.start(call);
        for (int i = 0; i < 4; ++i) group.go(call);
        group.wait();
      }
      EXPECT_TRUE(once.done());
    }
  });
}

TEST_P(OnceTest, AnExceptionLetsTheNextOneTry) {
  run_with(GetParam(), [] {
    Once once;
    int calls = 0;
    std::atomic<int> caught = 0;
    WaitGroup group;
    for (int i = 0; i < 8; ++i) {
      group.go([&] {
        try {
          once.call([&] {
            yield();
            if (++calls < 4) throw std::runtime_error("not yet");
          });
        } catch (const std::runtime_error&) {
          ++caught;
        }
      });
    }
    group.go([&] { once.call([] { goexit(); }); });
    group.wait();
    EXPECT_EQ(calls, 4);
    EXPECT_EQ(caught, 3);
    EXPECT_TRUE(once.done());
  });
}

TEST_P(OnceTest, AContextEndsTheWaitForAnother) {
  run_with(GetParam(), [] {
    Once once;
    auto [ctx, cancel] = with_cancel(Context());
    Semaphore begun(0), go_on(0);
    WaitGroup group;
    group.go([&] {
      once.call([&] {
        begun.release();
        go_on.acquire();
      });
    });
    begun.acquire();
    group.go([&, &ctx = ctx] { EXPECT_FALSE(once.call(ctx, [] { FAIL(); })); });
    yield();
    cancel();
    yield_until([] { return num_goroutine() <= 2; });
    go_on.release();
    group.wait();
    EXPECT_TRUE(once.call(ctx, [] { FAIL(); }));  // the call is done: nothing to wait for
  });
}

TEST_P(OnceTest, OnceValueMakesOneValueForAll) {
  run_with(GetParam(), [] {
    std::atomic<int> made = 0;
    OnceValue text([&] {
      yield();
      if (++made == 1) throw std::runtime_error("the first try fails");
      return std::make_unique<std::string>("made");
    });
    EXPECT_THROW(text(), std::runtime_error);
    WaitGroup group;
    std::atomic<const void*> address = nullptr;
    for (int i = 0; i < 8; ++i) {
      group.go([&] {
        EXPECT_EQ(*text(), "made");
        const void* before = nullptr;
        if (address.compare_exchange_strong(before, &text())) return;
        EXPECT_EQ(before, &text());
      });
    }
    group.wait();
    EXPECT_EQ(made, 2);
    EXPECT_EQ(*text(Context()), &text());
  });
}

class BarrierTest : public WithProcs {};
TUZA_WITH_PROCS(BarrierTest);

TEST_P(BarrierTest, NobodyIsARoundAhead) {
  run_with(GetParam(), [] {
    constexpr int kParticipants = 4;
    const int rounds = scaled(1'000);
    int completed = 0;
    int at[kParticipants] = {};  // plain ints: TSan checks the ordering
    Barrier barrier(kParticipants, [&] {
      for (const int round : at) EXPECT_EQ(round, completed + 1);
      if (goroutine_id() != 0 && completed % 16 == 0) yield();
      ++completed;
    });
    WaitGroup group;
    Threads threads;
    for (int i = 0; i < kParticipants; ++i) {
      const auto work = [&, i] {
        for (int round = 1; round <= rounds; ++round) {
          at[i] = round;
          barrier.arrive_and_wait();
          EXPECT_EQ(completed, round);
        }
      };
      if (i == 0) {
        threads.start(work);
      } else {
        group.go(work);
      }
    }
    group.wait();
  });
}

TEST_P(BarrierTest, ACompletionThatThrowsLetsTheOthersGo) {
  run_with(GetParam(), [] {
    int rounds = 0;
    Barrier barrier(3, [&] {
      if (++rounds == 1) throw std::runtime_error("no");
    });
    std::atomic<int> thrown = 0;
    WaitGroup group;
    for (int i = 0; i < 3; ++i) {
      group.go([&] {
        try {
          barrier.arrive_and_wait();
        } catch (const std::runtime_error&) {
          ++thrown;
        }
        barrier.arrive_and_wait();
      });
    }
    group.wait();
    EXPECT_EQ(thrown, 1);
    EXPECT_EQ(rounds, 2);
  });
}

TEST_P(BarrierTest, NobodyWaitsForAnArriverThatDroppedOut) {
  run_with(GetParam(), [] {
    int rounds = 0;
    Barrier barrier(3, [&] { ++rounds; });
    WaitGroup group;
    group.go([&] { barrier.arrive_and_drop(); });
    for (int i = 0; i < 2; ++i) {
      group.go([&] {
        for (int n = 0; n < 10; ++n) barrier.arrive_and_wait();
      });
    }
    group.wait();
    EXPECT_EQ(rounds, 10);
  });
}

// A withdrawn arrival no longer counts; an arrival whose withdrawal came too late does.
TEST_P(BarrierTest, AContextTakesTheArrivalBack) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(500); ++round) {
      int completed = 0;
      auto barrier = std::make_unique<Barrier>(2, [&] {
        yield();
        ++completed;
      });
      auto [ctx, cancel] = with_cancel(Context());
      WaitGroup group;
      group.go([&, &ctx = ctx] {
        if (barrier->arrive_and_wait(ctx)) {
          EXPECT_EQ(completed, 1);
        } else {
          barrier->arrive_and_wait();
        }
      });
      group.go([&cancel = cancel] { cancel(); });
      if (round % 2 == 0) yield();
      barrier->arrive_and_wait();
      EXPECT_EQ(completed, 1);
      group.wait();
      barrier.reset();
    }
  });
}

}  // namespace
}  // namespace tuza
