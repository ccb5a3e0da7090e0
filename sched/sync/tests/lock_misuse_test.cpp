// Misuse of locks, detected in every build: the process ends with a message that names the misuse.
#include <tuza/sched/sync/barrier.h>
#include <tuza/sched/sync/cond.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/latch.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/once.h>
#include <tuza/sched/sync/rw_mutex.h>
#include <tuza/sched/sync/semaphore.h>
#include <tuza/sched/sync/tests/locks_testing.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/time/sleep.h>

#include <chrono>
#include <limits>
#include <memory>
#include <shared_mutex>

namespace tuza {
namespace {

class LockMisuseDeathTest : public ::testing::Test {
 protected:
  LockMisuseDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// Runs `wait` on a goroutine named "waiter", and then destroys the object that the goroutine waits for.
template <class T, class Wait>
void destroy_under_a_waiter(std::unique_ptr<T> object, Wait wait) {
  run([&] {
    go({.name = "waiter"}, [&wait, waited = object.get()] { wait(*waited); });
    testing::wait_until_all_park();
    object.reset();
  });
}

TEST_F(LockMisuseDeathTest, UnlockingWhatIsNotLocked) {
  EXPECT_DEATH(run([] { Mutex().unlock(); }), "unlock of a Mutex that is not locked.*\n.*goroutine 1");
  EXPECT_DEATH(Mutex().unlock(), "unlock of a Mutex that is not locked");  // a thread
  EXPECT_DEATH(run([] { RWMutex().unlock(); }), "unlock of an RWMutex that is not locked for writing");
  EXPECT_DEATH(run([] { RWMutex().unlock_shared(); }), "unlock_shared of an RWMutex that is not locked");
  EXPECT_DEATH(run([] {
                 RWMutex mutex;
                 mutex.lock_shared();
                 mutex.unlock();
               }),
               "unlock of an RWMutex that is not locked for writing");
  EXPECT_DEATH(run([] {
                 RWMutex mutex;
                 mutex.lock();
                 mutex.unlock_shared();
               }),
               "unlock_shared of an RWMutex that is not locked for reading");
  EXPECT_DEATH(run([] {
                 Mutex mutex;
                 Cond().wait(mutex);
               }),
               "unlock of a Mutex that is not locked");
}

TEST_F(LockMisuseDeathTest, CountingBelowZero) {
  EXPECT_DEATH(run([] { WaitGroup().done(); }), "more done\\(\\) than add\\(\\)");
  EXPECT_DEATH(run([] {
                 WaitGroup group;
                 group.add(2);
                 group.add(-3);
               }),
               "more done\\(\\) than add\\(\\)");
  EXPECT_DEATH(Latch(1).count_down(2), "Latch: counted down by more than its count");
  EXPECT_DEATH(Latch(1).count_down(-1), "Latch: counted down by more than its count");
  EXPECT_DEATH(Latch(-1), "Latch: a negative count");
  EXPECT_DEATH(Semaphore(-1), "Semaphore: a negative number of permits");
  EXPECT_DEATH(Semaphore(1).release(-1), "Semaphore: a negative number of permits");
  EXPECT_DEATH(Semaphore(1).acquire(-1), "Semaphore: a negative number of permits");
  EXPECT_DEATH(Semaphore(1).release(std::numeric_limits<std::int64_t>::max()), "Semaphore: more than");
  EXPECT_DEATH(Barrier(0), "Barrier: fewer than one participant");
  EXPECT_DEATH(run([] {
                 Barrier barrier(1);
                 barrier.arrive_and_drop();
                 barrier.arrive_and_wait();
               }),
               "Barrier: more arrivals than participants");
}

TEST_F(LockMisuseDeathTest, DestroyingAWaitGroupWhoseGoroutinesRun) {
  constexpr const char* kSays =
      "WaitGroup destroyed before its goroutines have ended: wait\\(\\) for them.*\n.*goroutine 1";
  EXPECT_DEATH(run([] { WaitGroup().go([] { sleep_for(std::chrono::hours(1)); }); }), kSays);
  EXPECT_DEATH(run([] {
                 const auto [ctx, cancel] = with_timeout(Context::background(), std::chrono::milliseconds(1));
                 WaitGroup group;
                 group.go([] { sleep_for(std::chrono::hours(1)); });
                 (void)group.wait(ctx);
               }),
               kSays);
}

TEST(LockMisuse, AWaitGroupMayOutliveTheRunThatLeftItsGoroutinesBehind) {
  WaitGroup group;
  run([&group] { group.go([] { sleep_for(std::chrono::hours(1)); }); });
}

TEST_F(LockMisuseDeathTest, DestroyingALockWithWaiters) {
  constexpr const char* kWho = " destroyed while goroutines wait for it: goroutine [0-9]+ \\(waiter\\)";
  const auto says = [&](const char* type) { return std::string(type) + kWho; };
  auto mutex = std::make_unique<Mutex>();
  mutex->lock();
  EXPECT_DEATH(destroy_under_a_waiter(std::move(mutex), [](Mutex& m) { m.lock(); }), says("Mutex"));
  auto read = std::make_unique<RWMutex>();
  read->lock();
  EXPECT_DEATH(destroy_under_a_waiter(std::move(read), [](RWMutex& m) { m.lock_shared(); }), says("RWMutex"));
  auto written = std::make_unique<RWMutex>();
  written->lock_shared();
  EXPECT_DEATH(destroy_under_a_waiter(std::move(written), [](RWMutex& m) { m.lock(); }), says("RWMutex"));
  auto writers = std::make_unique<RWMutex>();
  writers->lock();
  EXPECT_DEATH(destroy_under_a_waiter(std::move(writers), [](RWMutex& m) { m.lock(); }), says("RWMutex"));
  auto group = std::make_unique<WaitGroup>();
  group->add(1);
  EXPECT_DEATH(destroy_under_a_waiter(std::move(group), [](WaitGroup& g) { g.wait(); }), says("WaitGroup"));
  EXPECT_DEATH(destroy_under_a_waiter(std::make_unique<Semaphore>(0), [](Semaphore& s) { s.acquire(); }),
               says("Semaphore"));
  EXPECT_DEATH(destroy_under_a_waiter(std::make_unique<Latch>(1), [](Latch& l) { l.wait(); }), says("Latch"));
  EXPECT_DEATH(destroy_under_a_waiter(std::make_unique<Barrier>(2), [](Barrier& b) { b.arrive_and_wait(); }),
               says("Barrier"));
  EXPECT_DEATH(destroy_under_a_waiter(std::make_unique<Cond>(),
                                      [](Cond& cond) {
                                        Mutex own;
                                        own.lock();
                                        cond.wait(own);
                                      }),
               says("Cond"));
}

TEST_F(LockMisuseDeathTest, ThreadsThatWaitAreNamedAsSuch) {
  EXPECT_DEATH(
      {
        auto mutex = std::make_unique<Mutex>();
        mutex->lock();
        std::thread([m = mutex.get()] { m->lock(); }).detach();
        while (MutexInspector::waiters(*mutex) == 0) std::this_thread::yield();
        mutex.reset();
      },
      "Mutex destroyed while goroutines wait for it: a thread");
}

// A goroutine that waits for itself is found like every deadlock.
TEST_F(LockMisuseDeathTest, WaitingForOneself) {
  EXPECT_EXIT(run([] {
                Mutex mutex;
                mutex.lock();
                mutex.lock();
              }),
              ::testing::ExitedWithCode(2), "deadlock!(.|\n)*sync.Mutex.lock");
  EXPECT_EXIT(run([] {
                Once once;
                once.call([&] { once.call([] {}); });
              }),
              ::testing::ExitedWithCode(2), "deadlock!(.|\n)*sync.Once");
  EXPECT_EXIT(run([] {
                RWMutex mutex;
                const std::shared_lock lock(mutex);
                mutex.lock();
              }),
              ::testing::ExitedWithCode(2), "deadlock!(.|\n)*sync.RWMutex.lock");
}

}  // namespace
}  // namespace tuza
