// A std::mutex held across a park: debug and chaos builds say which goroutine does it.
#include <tuza/sched/go.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/sleep.h>

#include <mutex>
#include <shared_mutex>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using testing::run_with;

// Starts a goroutine named "careless" that parks while it holds `mutex`.
template <class M>
void park_with(M& mutex) {
  run([&mutex] {
    go({.name = "careless"}, [&mutex] {
      const std::scoped_lock lock(mutex);
      sleep_for(1ms);
    });
    sleep_for(10s);
  });
}

TEST(HeldMutexDeathTest, ParkingWithAStdMutexNamesTheGoroutine) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::mutex plain;
  std::timed_mutex timed;
  std::shared_mutex shared;
  constexpr auto kReport = "goroutine [0-9]+ \\(careless\\) parks while it holds 1 std::mutex";
  EXPECT_DEATH(park_with(plain), kReport);
  EXPECT_DEATH(park_with(timed), kReport);
  EXPECT_DEATH(park_with(shared), kReport);
  EXPECT_DEATH(run([&plain] {
                 const std::unique_lock lock(plain, std::try_to_lock);
                 yield();
               }),
               "\\(main\\) parks while");
}

TEST(HeldMutex, WhatIsGivenBackBeforeAParkDoesNotMatter) {
  run_with(2, [] {
    std::mutex mutex;
    std::shared_mutex shared;
    for (int i = 0; i < 100; ++i) {
      {
        const std::scoped_lock lock(mutex, shared);
      }
      const bool got = mutex.try_lock();
      EXPECT_TRUE(got);
      if (got) mutex.unlock();
      yield();
    }
  });
}

TEST(HeldMutex, AMutexOfTuzaMayBeHeld) {
  run_with(2, [] {
    Mutex mutex;
    const std::scoped_lock lock(mutex);
    sleep_for(1ms);
  });
}

TEST(HeldMutex, AGoroutineThatOwnsItsThreadMayHoldOne) {
  run_with(2, [] {
    std::mutex mutex;
    lock_os_thread();
    {
      const std::scoped_lock lock(mutex);
      sleep_for(1ms);
    }
    unlock_os_thread();
  });
}

}  // namespace
}  // namespace tuza
