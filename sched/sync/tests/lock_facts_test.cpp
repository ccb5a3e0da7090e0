// Go's documentation of package sync as a table: each fact, and the smallest program that shows it. Also a
// promise beyond it: no allocation in steady state.
#include <tuza/sched/sync/barrier.h>
#include <tuza/sched/sync/cond.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/latch.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/once.h>
#include <tuza/sched/sync/rw_mutex.h>
#include <tuza/sched/sync/semaphore.h>
#include <tuza/sched/sync/tests/counting_new.h>
#include <tuza/sched/sync/tests/locks_testing.h>
#include <tuza/sched/sync/wait_group.h>

#include <ostream>
#include <shared_mutex>
#include <tuple>

namespace tuza {
namespace {

using namespace testing;

struct Fact {
  const char* text;
  void (*show)();
};

// True if `call` still waits after others have had some turns; `release` ends its wait.
template <class Call, class Release>
bool waits(Call&& call, Release&& release) {
  std::atomic<bool> returned = false;
  WaitGroup group;
  group.go([&] {
    call();
    returned = true;
  });
  for (int i = 0; i < 20; ++i) yield();
  const bool waited = !returned;
  release();
  group.wait();
  return waited;
}

// A goroutine that waits for a Cond.
struct Sleeper {
  Mutex mutex;
  Cond cond;
  bool queued = false;  // guarded by mutex, which the wait releases
  void wait() {
    std::unique_lock lock(mutex);
    queued = true;
    cond.wait(lock);
    EXPECT_FALSE(mutex.try_lock());  // the waiter holds the lock
  }
  void until_queued() {
    yield_until([&] {
      const std::scoped_lock lock(mutex);
      return queued;
    });
  }
};

const Fact kFacts[] = {
    {"the zero value of a Mutex is unlocked", [] { EXPECT_TRUE(Mutex().try_lock()); }},
    {"Lock of a locked Mutex waits until it is available",
     [] {
       Mutex mutex;
       mutex.lock();
       EXPECT_TRUE(waits([&] { mutex.lock(); }, [&] { mutex.unlock(); }));
     }},
    {"a Mutex is not tied to a goroutine: another one may unlock it",
     [] {
       Mutex mutex;
       mutex.lock();
       WaitGroup group;
       group.go([&] { mutex.unlock(); });
       group.wait();
       EXPECT_TRUE(mutex.try_lock());
     }},
    {"TryLock says whether it succeeded",
     [] {
       Mutex mutex;
       EXPECT_TRUE(mutex.try_lock());
       EXPECT_FALSE(mutex.try_lock());
     }},
    {"an RWMutex is held by any number of readers",
     [] {
       RWMutex mutex;
       EXPECT_TRUE(mutex.try_lock_shared());
       EXPECT_TRUE(mutex.try_lock_shared());
       EXPECT_FALSE(mutex.try_lock());
     }},
    {"or by one writer",
     [] {
       RWMutex mutex;
       EXPECT_TRUE(mutex.try_lock());
       EXPECT_FALSE(mutex.try_lock());
       EXPECT_FALSE(mutex.try_lock_shared());
     }},
    {"a blocked Lock of an RWMutex excludes new readers",
     [] {
       RWMutex mutex;
       mutex.lock_shared();
       EXPECT_TRUE(waits([&] { mutex.lock(); },
                         [&] {
                           yield_until([&] { return MutexInspector::writer_waits(mutex); });
                           EXPECT_FALSE(mutex.try_lock_shared());
                           mutex.unlock_shared();
                         }));
     }},
    {"Unlock of an RWMutex lets the readers in that wait",
     [] {
       RWMutex mutex;
       mutex.lock();
       EXPECT_TRUE(waits([&] { mutex.lock_shared(); }, [&] { mutex.unlock(); }));
     }},
    {"an RWMutex may be unlocked by another goroutine",
     [] {
       RWMutex mutex;
       mutex.lock_shared();
       WaitGroup group;
       group.go([&] { mutex.unlock_shared(); });
       mutex.lock();
       group.wait();
       EXPECT_FALSE(mutex.try_lock_shared());
     }},
    {"Wait of a WaitGroup at zero returns at once", [] { WaitGroup().wait(); }},
    {"Add takes a negative number, and zero releases all",
     [] {
       WaitGroup group;
       group.add(3);
       EXPECT_TRUE(waits([&] { group.wait(); }, [&] { group.add(-3); }));
     }},
    {"a WaitGroup is used again when all Waits have returned",
     [] {
       WaitGroup group;
       for (int i = 0; i < 3; ++i) {
         group.add(1);
         EXPECT_TRUE(waits([&] { group.wait(); }, [&] { group.done(); }));
       }
     }},
    {"Once calls only the function of its first call",
     [] {
       Once once;
       int a = 0, b = 0;
       once.call([&] { ++a; });
       once.call([&] { ++b; });
       EXPECT_EQ(a * 10 + b, 10);
     }},
    {"no call of Once returns before the function has",
     [] {
       Once once;
       Semaphore go_on(0);
       WaitGroup first;
       std::atomic<bool> begun = false;
       first.go([&] {
         once.call([&] {
           begun = true;
           go_on.acquire();
         });
       });
       yield_until([&] { return begun.load(); });
       EXPECT_TRUE(waits([&] { once.call([] {}); }, [&] { go_on.release(); }));
       first.wait();
     }},
    {"Wait of a Cond gives the lock back while it waits, and has it when it returns",
     [] {
       Sleeper sleeper;
       EXPECT_TRUE(waits([&] { sleeper.wait(); },
                         [&] {
                           sleeper.until_queued();
                           const std::scoped_lock lock(sleeper.mutex);
                           sleeper.cond.signal();
                         }));
     }},
    {"Signal without a waiter does nothing, and is not remembered",
     [] {
       Sleeper sleeper;
       sleeper.cond.signal();
       sleeper.cond.broadcast();
       EXPECT_TRUE(waits([&] { sleeper.wait(); },
                         [&] {
                           sleeper.until_queued();
                           sleeper.cond.broadcast();
                         }));
     }},
    {"Signal is allowed without the lock",
     [] {
       Sleeper sleeper;
       EXPECT_TRUE(waits([&] { sleeper.wait(); },
                         [&] {
                           sleeper.until_queued();
                           sleeper.cond.signal();
                         }));
     }},
    {"a weighted semaphore blocks until there are so many (x/sync)",
     [] {
       Semaphore semaphore(3);
       semaphore.acquire(2);
       EXPECT_TRUE(waits([&] { semaphore.acquire(2); }, [&] { semaphore.release(2); }));
     }},
    {"TryAcquire fails rather than take fewer (x/sync)",
     [] {
       Semaphore semaphore(3);
       EXPECT_FALSE(semaphore.try_acquire(4));
       EXPECT_TRUE(semaphore.try_acquire(3));
     }},
    {"Acquire with an ended context returns its error and takes nothing (x/sync)",
     [] {
       Semaphore semaphore(1);
       auto [ctx, cancel] = with_cancel(Context());
       cancel();
       EXPECT_FALSE(semaphore.acquire(ctx));
       EXPECT_TRUE(semaphore.try_acquire());
     }},
    {"Acquire of more than there is waits for its context (x/sync)",
     [] {
       Semaphore semaphore(1);
       auto [ctx, cancel] = with_cancel(Context());
       EXPECT_TRUE(waits([&, &ctx = ctx] { EXPECT_FALSE(semaphore.acquire(ctx, 2)); }, cancel));
       EXPECT_TRUE(semaphore.try_acquire());
     }},
};

void PrintTo(const Fact& fact, std::ostream* out) { *out << '"' << fact.text << '"'; }

class LockFactsTest : public ::testing::TestWithParam<std::tuple<Fact, int>> {};
INSTANTIATE_TEST_SUITE_P(P, LockFactsTest,
                         ::testing::Combine(::testing::ValuesIn(kFacts),
                                            ::testing::ValuesIn(proc_counts({1, 2, 4}))));

TEST_P(LockFactsTest, AreAsInGo) {
  const auto& [fact, procs] = GetParam();
  run_with(procs, fact.show);
}

// Runs `body` on four goroutines, in rounds: first to warm up, then counted.
void expect_no_allocation(const char* what, const std::function<void()>& body) {
  const auto round = [&] {
    WaitGroup group;
    for (int g = 0; g < 4; ++g) {
      group.go([&] {
        for (int i = 0; i < testing::scaled(500); ++i) body();
      });
    }
    group.wait();
  };
  // The warm-up ends when a round allocates nothing; if every round allocates, it never ends successfully.
  std::uint64_t allocated = 1;
  for (int i = 0; i < 20 && allocated != 0; ++i) {
    const std::uint64_t before = allocations();
    round();
    allocated = allocations() - before;
  }
  EXPECT_EQ(allocated, 0u) << what;
}

TEST(LockFacts, NothingIsAllocatedInSteadyState) {
  run_with(2, [] {
    Mutex mutex;
    RWMutex rw_mutex;
    Semaphore semaphore(2);
    Cond cond;
    Once once;
    Barrier barrier(4);
    const CancellableContext context = with_cancel(Context());
    expect_no_allocation("Mutex", [&] {
      const std::scoped_lock lock(mutex);
      yield();
    });
    expect_no_allocation("Mutex with a context", [&] {
      EXPECT_TRUE(mutex.lock(context.ctx()));
      yield();
      mutex.unlock();
    });
    expect_no_allocation("Mutex with a time", [&] {
      if (!mutex.try_lock_for(std::chrono::microseconds(10))) return;
      yield();
      mutex.unlock();
    });
    expect_no_allocation("RWMutex", [&] {
      {
        const std::shared_lock lock(rw_mutex);
        yield();
      }
      const std::scoped_lock lock(rw_mutex);
      yield();
    });
    expect_no_allocation("Semaphore", [&] {
      semaphore.acquire(2);
      yield();
      semaphore.release(2);
    });
    expect_no_allocation("Cond", [&] {
      std::unique_lock lock(mutex);
      cond.broadcast();
      (void)cond.wait(context.ctx(), lock, [&, n = 0]() mutable { return ++n > 0; });
    });
    expect_no_allocation("Once", [&] { once.call([] {}); });
    expect_no_allocation("Barrier", [&] { barrier.arrive_and_wait(); });
    expect_no_allocation("Latch and WaitGroup", [&] {
      Latch latch(1);
      WaitGroup group;
      group.go([&] { latch.count_down(); });
      latch.wait();
      group.wait();
    });
  });
}

}  // namespace
}  // namespace tuza
