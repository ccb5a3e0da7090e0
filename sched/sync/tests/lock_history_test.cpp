// Histories of locks, recorded and checked: each use of a lock is a call, a turn inside, and a return. The
// order of the turns must agree with the calls that had returned before others began.
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/rw_mutex.h>
#include <tuza/sched/sync/semaphore.h>
#include <tuza/sched/sync/tests/locks_testing.h>
#include <tuza/sched/sync/wait_group.h>

#include <algorithm>
#include <memory>

namespace tuza {
namespace {

using namespace testing;

struct Use {
  std::int64_t called;    // ticks of one clock for all
  std::int64_t turn;      // the value of the counter under the lock
  std::int64_t returned;  // of unlock()
};

class History {
 public:
  std::int64_t tick() { return clock_.fetch_add(1); }
  // Called with the lock under test held.
  std::int64_t take_turn() {
    EXPECT_EQ(inside_, 0);
    inside_ = 1;
    const std::int64_t turn = turns_++;
    inside_ = 0;
    return turn;
  }
  void add(std::vector<Use>&& uses) {
    const std::scoped_lock lock(mutex_);
    uses_.insert(uses_.end(), uses.begin(), uses.end());
  }
  // No turn is lost or taken twice. If one use returned before another called, its turn came first.
  void check() {
    std::sort(uses_.begin(), uses_.end(), [](const Use& a, const Use& b) { return a.turn < b.turn; });
    std::int64_t called_last = 0;  // of the turns so far
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      ASSERT_EQ(uses_[i].turn, static_cast<std::int64_t>(i));
      ASSERT_GT(uses_[i].returned, called_last) << "turn " << i << " came too late";
      called_last = std::max(called_last, uses_[i].called);
    }
    EXPECT_EQ(static_cast<std::size_t>(turns_), uses_.size());
  }

 private:
  std::atomic<std::int64_t> clock_{1};
  std::int64_t turns_ = 0;  // plain: guarded by the lock under test, which TSan checks
  int inside_ = 0;
  std::mutex mutex_;
  std::vector<Use> uses_;  // guarded by mutex_
};

// `lock(i)` returns whether it acquired the lock; `unlock()` releases it.
template <class Lock, class Unlock>
void record(int procs, Lock&& lock, Unlock&& unlock) {
  run_with(procs, [&] {
    History history;
    const int rounds = scaled(4'000);
    {
      Threads threads;
      WaitGroup group;
      const auto work = [&] {
        std::vector<Use> uses;
        for (int i = 0; i < rounds; ++i) {
          Use use{};
          use.called = history.tick();
          if (!lock(i)) continue;
          use.turn = history.take_turn();
          if (i % 32 == 0 && goroutine_id() != 0) yield();
          unlock();
          use.returned = history.tick();
          uses.push_back(use);
        }
        history.add(std::move(uses));
      };
      for (int i = 0; i < 6; ++i) group.go(work);
      for (int i = 0; i < 2; ++i) threads.start(work);
      group.wait();
    }
    history.check();
  });
}

class LockHistoryTest : public WithProcs {};
TUZA_WITH_PROCS(LockHistoryTest);

TEST_P(LockHistoryTest, OfAMutexAreInOrder) {
  Mutex mutex;
  record(
      GetParam(),
      [&](int) {
        mutex.lock();
        return true;
      },
      [&] { mutex.unlock(); });
}

TEST_P(LockHistoryTest, OfAMutexWithAllWaysToLockAreInOrder) {
  Mutex mutex;
  record(
      GetParam(),
      [&](int i) {
        if (i % 3 == 0) return mutex.try_lock();
        if (i % 3 == 1) return mutex.try_lock_for(std::chrono::microseconds(i % 20));
        mutex.lock();
        return true;
      },
      [&] { mutex.unlock(); });
  EXPECT_TRUE(MutexInspector::untouched(mutex));
}

TEST_P(LockHistoryTest, OfWritersAreInOrder) {
  RWMutex mutex;
  record(
      GetParam(),
      [&](int i) {
        if (i % 4 == 0) {  // and readers in between
          mutex.lock_shared();
          mutex.unlock_shared();
        }
        mutex.lock();
        return true;
      },
      [&] { mutex.unlock(); });
}

TEST_P(LockHistoryTest, OfASemaphoreOfOneAreInOrder) {
  Semaphore semaphore(1);
  record(
      GetParam(),
      [&](int i) {
        if (i % 3 == 0) return semaphore.try_acquire();
        semaphore.acquire();
        return true;
      },
      [&] { semaphore.release(); });
}

}  // namespace
}  // namespace tuza
