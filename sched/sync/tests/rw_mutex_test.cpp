// RWMutex: readers together, writers alone; none starves, and none is forgotten when a writer gives up.
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/rw_mutex.h>
#include <tuza/sched/sync/tests/locks_testing.h>
#include <tuza/sched/sync/wait_group.h>

#include <memory>
#include <shared_mutex>

namespace tuza {
namespace {

using namespace testing;

class RWMutexTest : public WithProcs {};
TUZA_WITH_PROCS(RWMutexTest);

TEST_P(RWMutexTest, WritersAreAloneAndReadersSeeWhatTheyWrote) {
  run_with(GetParam(), [] {
    RWMutex mutex;
    std::int64_t a = 0, b = 0;  // plain: TSan checks the ordering
    const int rounds = scaled(2'000);
    const auto write = [&] {
      for (int i = 0; i < rounds; ++i) {
        const std::scoped_lock lock(mutex);
        ++a;
        if (i % 16 == 0) yield();
        ++b;
      }
    };
    const auto read = [&] {
      for (int i = 0; i < rounds; ++i) {
        const std::shared_lock lock(mutex);
        const std::int64_t seen = a;
        if (i % 16 == 0) yield();
        EXPECT_EQ(seen, b);
      }
    };
    WaitGroup group;
    for (int i = 0; i < 3; ++i) {
      group.go(write);
      group.go(read);
      group.go(read);
    }
    group.wait();
    EXPECT_EQ(a, 3 * rounds);
    EXPECT_TRUE(mutex.try_lock());
    mutex.unlock();
  });
}

TEST_P(RWMutexTest, ThreadsAndGoroutinesShareOne) {
  run_with(GetParam(), [] {
    RWMutex mutex;
    std::int64_t value = 0;
    const int rounds = scaled(3'000);
    {
      Threads threads;
      WaitGroup group;
      const auto work = [&] {
        for (int i = 0; i < rounds; ++i) {
          if (i % 4 == 0) {
            const std::scoped_lock lock(mutex);
            ++value;
          } else {
            const std::shared_lock lock(mutex);
            EXPECT_GE(value, 0);
          }
        }
      };
      for (int i = 0; i < 2; ++i) {
        threads.start(work);
        group.go(work);
      }
      group.wait();
    }
    EXPECT_EQ(value, 4 * ((rounds + 3) / 4));
  });
}

TEST_P(RWMutexTest, ReadersAreInsideTogether) {
  run_with(GetParam(), [] {
    RWMutex mutex;
    constexpr int kReaders = 10;
    std::atomic<int> inside = 0;
    WaitGroup group;
    for (int i = 0; i < kReaders; ++i) {
      group.go([&] {
        const std::shared_lock lock(mutex);
        ++inside;
        yield_until([&] { return inside == kReaders; });
      });
    }
    group.wait();
  });
}

TEST_P(RWMutexTest, AWaitingWriterKeepsNewReadersOut) {
  run_with(GetParam(), [] {
    RWMutex mutex;
    mutex.lock_shared();
    std::atomic<bool> written = false;
    WaitGroup group;
    group.go([&] {
      const std::scoped_lock lock(mutex);
      written = true;
    });
    yield_until([&] { return MutexInspector::writer_waits(mutex); });
    group.go([&] {
      const std::shared_lock lock(mutex);
      EXPECT_TRUE(written);
    });
    for (int i = 0; i < 10; ++i) yield();
    EXPECT_FALSE(written);
    EXPECT_FALSE(mutex.try_lock());
    mutex.unlock_shared();
    group.wait();
  });
}

// Readers that arrive while it is locked for writing go before the writers that arrived before them.
TEST_P(RWMutexTest, ReadersThatWaitedGoBeforeTheNextWriter) {
  run_with(GetParam(), [] {
    constexpr int kReaders = 5;
    RWMutex mutex;
    std::atomic<int> read = 0;
    WaitGroup group;
    mutex.lock();
    for (int i = 0; i < 2; ++i) {
      group.go([&] {
        const std::scoped_lock lock(mutex);
        EXPECT_EQ(read, kReaders);
      });
    }
    yield_until([&] { return MutexInspector::writers_behind_the_first(mutex) == 2; });
    for (int i = 0; i < kReaders; ++i) {
      group.go([&] {
        const std::shared_lock lock(mutex);
        ++read;
      });
    }
    yield_until([&] { return MutexInspector::readers(mutex) == kReaders; });
    mutex.unlock();
    group.wait();
  });
}

TEST_P(RWMutexTest, AWriterThatGivesUpLetsTheReadersIn) {
  run_with(GetParam(), [] {
    RWMutex mutex;
    for (int round = 0; round < scaled(500); ++round) {
      auto [ctx, cancel] = with_cancel(Context());
      mutex.lock_shared();
      WaitGroup group;
      group.go([&, &ctx = ctx] {
        const Result<void> locked = mutex.lock(ctx);
        ASSERT_FALSE(locked);
        EXPECT_TRUE(locked.error().cancelled());
      });
      yield_until([&] { return MutexInspector::writer_waits(mutex); });
      std::atomic<int> inside = 0;
      for (int i = 0; i < 2; ++i) {
        group.go([&] {
          const std::shared_lock lock(mutex);
          ++inside;
        });
      }
      cancel();
      yield_until([&] { return inside == 2; });  // while the first reader is still inside
      group.wait();
      mutex.unlock_shared();
      EXPECT_TRUE(mutex.try_lock());
      mutex.unlock();
    }
  });
}

TEST_P(RWMutexTest, NothingIsLostWhenWaitersGiveUp) {
  run_with(GetParam(), [] {
    RWMutex mutex;
    std::int64_t value = 0;
    std::atomic<std::int64_t> written = 0;
    const int rounds = scaled(1'000);
    WaitGroup group;
    for (int g = 0; g < 4; ++g) {
      group.go([&, g] {
        for (int i = 0; i < rounds; ++i) {
          auto [ctx, cancel] = with_cancel(Context());
          WaitGroup canceller;
          if (i % 2 == 0) canceller.go([&cancel = cancel] { cancel(); });
          if ((g + i) % 2 == 0) {
            if (mutex.lock(ctx)) {
              ++value;
              ++written;
              if (i % 16 == 0) yield();
              mutex.unlock();
            }
          } else if (mutex.lock_shared(ctx)) {
            const std::int64_t seen = value;
            if (i % 16 == 0) yield();
            EXPECT_EQ(seen, value);
            mutex.unlock_shared();
          }
          canceller.wait();
        }
      });
    }
    group.wait();
    EXPECT_EQ(value, written.load());
    EXPECT_TRUE(mutex.try_lock());
    mutex.unlock();
  });
}

// The last goroutine to leave destroys it, while another unlock may still be returning: ASan reports any
// access after that.
TEST_P(RWMutexTest, MayBeDestroyedByTheLastOneToHaveIt) {
  run_with(GetParam(), [] {
    struct Shared {
      RWMutex mutex;
      std::atomic<int> users = 4;
    };
    for (int round = 0; round < scaled(3'000); ++round) {
      auto* shared = new Shared;
      WaitGroup group;
      for (int i = 0; i < 4; ++i) {
        group.go([shared, i] {
          bool last = false;
          if (i % 2 == 0) {
            shared->mutex.lock();
            last = --shared->users == 0;
            shared->mutex.unlock();
            if (last) delete shared;
            return;
          }
          // The last reader waits for no other: all others have gone, or are in their unlock.
          shared->mutex.lock_shared();
          last = --shared->users == 0;
          shared->mutex.unlock_shared();
          if (!last) return;
          shared->mutex.lock();  // other readers may still be inside
          shared->mutex.unlock();
          delete shared;
        });
      }
      group.wait();
    }
  });
}

}  // namespace
}  // namespace tuza
