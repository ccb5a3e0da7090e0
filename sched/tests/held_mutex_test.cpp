// A std::mutex held across a park: TUZA_DEBUG=heldmutex reports which goroutine holds it, and where it was locked.
// Debug and chaos builds always do.
#include <dlfcn.h>
#include <pthread.h>
#include <tuza/sched/arch/held_mutexes.h>
#include <tuza/sched/go.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/rt/g.h>
#include <tuza/sched/rt/park.h>
#include <tuza/sched/rt/report/mutex_report.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/sleep.h>

#include <array>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using testing::run_with;

// Functions whose names the reports must show.
template <class Lock>
[[gnu::noinline]] void take_it(Lock&& lock) {
  lock();
}
[[gnu::noinline]] void rest_a_little() { sleep_for(1ms); }

// Starts a goroutine named "careless" that calls `lock` and then parks.
template <class Lock>
void park_after(Lock lock) {
  run([&lock] {
    go({.name = "careless"}, [&lock] {
      take_it(lock);
      rest_a_little();
    });
    sleep_for(1h);
  });
}

constexpr auto kParks = "goroutine [0-9]+ \\(careless\\) parks while it holds ";

// The report shows the goroutine, the stack of the park, the creator, and for each lock its kind and where it
// was locked.
std::string report(const std::string& how_many, const std::string& lock) {
  return kParks + how_many +
         " std::mutex.*"
         "goroutine [0-9]+ \\[running\\] careless:.*"
         "rest_a_little\\(\\)\\+.*"
         "created by goroutine [0-9]+ in .*at [^\n]*held_mutex_test.cpp:[0-9]+\n" +
         lock + " here:\n.* void tuza::.*take_it<.*";
}

class HeldMutex : public ::testing::Test {
 protected:
  HeldMutex() { ::setenv("TUZA_DEBUG", "heldmutex", 1); }
  ~HeldMutex() override { ::unsetenv("TUZA_DEBUG"); }
};

class HeldMutexDeathTest : public HeldMutex {
 protected:
  HeldMutexDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// Holds a mutex across a park, says "ok", and ends the process.
[[noreturn]] void hold_one_and_say_ok() {
  run([] {
    std::mutex mutex;
    const std::scoped_lock lock(mutex);
    yield();
  });
  std::fputs("ok\n", stderr);
  std::_Exit(0);
}

TEST_F(HeldMutexDeathTest, TheOptionSwitchesTheCheckOn) {
  const auto in_child = [] {
    if (rt::checks_held_mutexes()) {  // a debug build, which needs no option
      std::fputs("ok\n", stderr);
      std::_Exit(0);
    }
    hold_one_and_say_ok();
  };
  for (const char* off : {"", "heldmutex=0", "asyncpreemptoff=0"}) {
    ::setenv("TUZA_DEBUG", off, 1);
    EXPECT_EXIT(in_child(), ::testing::ExitedWithCode(0), "^ok\n$") << off;
  }
  for (const char* on : {"heldmutex", "heldmutex=1", "asyncpreemptoff=1,heldmutex"}) {
    ::setenv("TUZA_DEBUG", on, 1);
    EXPECT_DEATH(hold_one_and_say_ok(), "\\(main\\) parks while it holds 1 std::mutex") << on;
  }
}

// Its calls do not pass our functions until it is noticed, so an unlock in it is not seen.
TEST_F(HeldMutexDeathTest, LibrariesThatAreOpenedLaterBlameNobody) {
  using Function = int(pthread_mutex_t*);
  const auto blame = [] {
    run([] {
      std::mutex mutex;
      void* library = ::dlopen(LATE_LOCKS, RTLD_LAZY);
      auto* lock = reinterpret_cast<Function*>(::dlsym(library, "late_lock"));
      auto* unlock = reinterpret_cast<Function*>(::dlsym(library, "late_unlock"));
      mutex.lock();
      unlock(mutex.native_handle());
      yield();
      std::fputs("not blamed, ", stderr);
      take_it([&] { lock(mutex.native_handle()); });
      unlock(mutex.native_handle());
      yield();
      std::fputs("nor later, ", stderr);
      lock(mutex.native_handle());
      yield();
    });
  };
  EXPECT_DEATH(blame(), "not blamed, nor later, (.|\n)*parks while it holds 1 std::mutex");
}

TEST_F(HeldMutexDeathTest, TheReportHasTheParkAndThePlaceWhereTheLockWasTaken) {
  std::mutex plain;
  std::recursive_mutex recursive;
  std::shared_mutex shared;
  EXPECT_DEATH(park_after([&] { plain.lock(); }),
               report("1", "mutex 0x[0-9a-f]+, locked by goroutine [0-9]+"));
  EXPECT_DEATH(park_after([&] { recursive.lock(); }),
               report("1", "recursive mutex 0x[0-9a-f]+, locked by goroutine [0-9]+"));
  EXPECT_DEATH(park_after([&] { shared.lock(); }),
               report("1", "rwlock 0x[0-9a-f]+, locked for writing by goroutine [0-9]+"));
  EXPECT_DEATH(park_after([&] { shared.lock_shared(); }),
               report("1", "rwlock 0x[0-9a-f]+, locked for reading by goroutine [0-9]+"));
}

TEST_F(HeldMutexDeathTest, WhatWasUnlockedIsNotInIt) {
  std::mutex first, second;
  std::shared_mutex third;
  EXPECT_DEATH(park_after([&] {
                 second.lock();
                 first.lock();
                 third.lock();
                 second.unlock();
               }),
               report("2", "mutex [^ ]*, locked by goroutine [0-9]+") +
                   "rwlock [^ ]*, locked for writing by goroutine [0-9]+ here:\n.* void tuza::.*take_it<.*");
}

TEST_F(HeldMutexDeathTest, LocksWithoutRoomAreCounted) {
  std::array<std::mutex, 10> many;
  EXPECT_DEATH(park_after([&] {
                 for (std::mutex& mutex : many) mutex.lock();
               }),
               report("10", "mutex [^ ]*, locked by goroutine [0-9]+") + "and 2 more");
}

TEST_F(HeldMutexDeathTest, YieldingIsParking) {
  std::mutex plain;
  EXPECT_DEATH(run([&plain] {
                 const std::unique_lock lock(plain, std::try_to_lock);
                 yield();
               }),
               "\\(main\\) parks while");
}

TEST_F(HeldMutexDeathTest, EndingWithOneIsRefusedToo) {
  std::mutex plain;
  EXPECT_DEATH(run([&plain] {
                 go({.name = "forgetful"}, [&plain] { take_it([&plain] { plain.lock(); }); });
                 sleep_for(1h);
               }),
               "goroutine [0-9]+ \\(forgetful\\) ends while it holds 1 std::mutex.*"
               "created by goroutine 1 in .*mutex [^ ]*, locked by goroutine [0-9]+ here:\n.*take_it<");
  EXPECT_DEATH(run([&plain] {
                 plain.lock();
                 goexit();
               }),
               "\\(main\\) ends while it holds 1 std::mutex");
}

// For calls that may park, but need not this time.
TEST_F(HeldMutexDeathTest, TheCheckCanBeMadeWithoutAPark) {
  std::mutex plain;
  EXPECT_DEATH(run([&plain] {
                 rt::check_no_mutex_held(*rt::current_g());
                 const std::scoped_lock lock(plain);
                 rt::check_no_mutex_held(*rt::current_g());
               }),
               "\\(main\\) parks while it holds 1 std::mutex.*mutex [^ ]*, locked by goroutine 1 here:");
}

// -- What counts as a lock.

TEST_F(HeldMutex, EveryWayToLockCountsOnceAndGivesBack) {
  run_with(1, [] {
    std::timed_mutex timed;
    std::recursive_timed_mutex recursive;
    std::shared_timed_mutex shared;
    const auto later = std::chrono::system_clock::now() + 1h;
    const auto once = [](auto lock, auto unlock) {
      EXPECT_TRUE(lock());
      EXPECT_EQ(rt::held_mutexes(), 1);
      EXPECT_EQ(rt::held_locks().size(), 1u);
      unlock();
      EXPECT_EQ(rt::held_mutexes(), 0);
    };
    once([&] { return timed.lock(), true; }, [&] { timed.unlock(); });
    once([&] { return timed.try_lock(); }, [&] { timed.unlock(); });
    once([&] { return timed.try_lock_for(1h); }, [&] { timed.unlock(); });
    once([&] { return timed.try_lock_until(later); }, [&] { timed.unlock(); });
    once([&] { return recursive.try_lock_for(1h); }, [&] { recursive.unlock(); });
    once([&] { return shared.lock(), true; }, [&] { shared.unlock(); });
    once([&] { return shared.try_lock(); }, [&] { shared.unlock(); });
    once([&] { return shared.try_lock_for(1h); }, [&] { shared.unlock(); });
    once([&] { return shared.try_lock_until(later); }, [&] { shared.unlock(); });
    once([&] { return shared.lock_shared(), true; }, [&] { shared.unlock_shared(); });
    once([&] { return shared.try_lock_shared(); }, [&] { shared.unlock_shared(); });
    once([&] { return shared.try_lock_shared_for(1h); }, [&] { shared.unlock_shared(); });
    once([&] { return shared.try_lock_shared_until(later); }, [&] { shared.unlock_shared(); });
  });
}

TEST_F(HeldMutex, OneThatWasNotGotDoesNotCount) {
  run_with(1, [] {
    std::timed_mutex mutex;
    std::shared_timed_mutex shared;
    std::thread other([&] {
      mutex.lock();
      shared.lock();
    });
    other.join();
    EXPECT_FALSE(mutex.try_lock());
    EXPECT_FALSE(mutex.try_lock_for(1us));
    EXPECT_FALSE(mutex.try_lock_until(std::chrono::system_clock::now()));
    EXPECT_FALSE(shared.try_lock());
    EXPECT_FALSE(shared.try_lock_shared());
    EXPECT_FALSE(shared.try_lock_for(1us));
    EXPECT_FALSE(shared.try_lock_shared_for(1us));
    EXPECT_EQ(rt::held_mutexes(), 0);
  });
}

TEST_F(HeldMutex, ARecursiveOneCountsAsOftenAsItIsLocked) {
  run_with(1, [] {
    std::recursive_mutex mutex;
    for (int i = 1; i <= 20; ++i) {
      mutex.lock();
      EXPECT_EQ(rt::held_mutexes(), i);
    }
    for (int i = 20; i-- > 0;) {
      mutex.unlock();
      EXPECT_EQ(rt::held_mutexes(), i);
    }
  });
}

TEST_F(HeldMutex, TheyMayBeUnlockedInAnyOrder) {
  run_with(1, [] {
    std::array<std::mutex, 12> many;
    for (std::mutex& mutex : many) mutex.lock();
    EXPECT_EQ(rt::held_mutexes(), 12);
    const auto first_to_go = {11, 3, 0, 7, 8, 1};
    for (const int i : first_to_go) many[static_cast<std::size_t>(i)].unlock();
    EXPECT_EQ(rt::held_mutexes(), 6);
    std::vector<const void*> left;
    for (const rt::HeldLock& held : rt::held_locks()) left.push_back(held.lock);
    EXPECT_EQ(left, (std::vector<const void*>{&many[2], &many[4], &many[5], &many[6]}));
    for (const int i : {2, 4, 5, 6, 9, 10}) many[static_cast<std::size_t>(i)].unlock();
    EXPECT_EQ(rt::held_mutexes(), 0);
  });
}

TEST_F(HeldMutex, AConditionVariableGivesItBackAndTakesItAgainUnseen) {
  run_with(1, [] {
    std::mutex mutex;
    std::condition_variable changed;
    bool ready = false;
    std::unique_lock lock(mutex);
    std::thread other([&] {
      const std::scoped_lock theirs(mutex);
      ready = true;
      changed.notify_one();
    });
    changed.wait(lock, [&ready] { return ready; });
    EXPECT_EQ(rt::held_mutexes(), 1);
    lock.unlock();
    EXPECT_EQ(rt::held_mutexes(), 0);
    other.join();
  });
}

#if defined(__x86_64__)
// Code without frame pointers may have any value in the register.
asm(R"(
    .text
    .type tuza_test_lock_with_frame_pointer, @function
tuza_test_lock_with_frame_pointer:
    push %rbp
    mov %rsi, %rbp
    call pthread_mutex_lock@PLT
    pop %rbp
    ret
    .size tuza_test_lock_with_frame_pointer, . - tuza_test_lock_with_frame_pointer
)");
extern "C" int tuza_test_lock_with_frame_pointer(pthread_mutex_t* mutex, std::uintptr_t frame_pointer);

TEST_F(HeldMutex, AFramePointerThatIsNoneIsNotFollowed) {
  run_with(1, [] {
    std::mutex mutex;
    const rt::Stack& stack = rt::current_g()->stack;
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    for (const std::uintptr_t bad :
         {std::uintptr_t{0}, std::uintptr_t{1}, std::uintptr_t{8}, ~std::uintptr_t{0}, ~std::uintptr_t{7},
          here + 1, here + 4, stack.low, stack.low - 8, stack.low + 8, stack.guard_low, stack.top - 8,
          stack.top, stack.top + 8, stack.top - 1, std::uintptr_t{1} << 63, std::uintptr_t{1} << 47}) {
      EXPECT_EQ(tuza_test_lock_with_frame_pointer(mutex.native_handle(), bad), 0);
      EXPECT_EQ(rt::held_locks().front().pcs().size(), 1u) << std::hex << bad;
      mutex.unlock();
    }
    // Words on the stack that look like frames may lead anywhere, but never outside the stack.
    std::array<std::uintptr_t, 512> junk;
    for (std::size_t i = 0; i < junk.size(); ++i) {
      junk[i] = i % 3 == 0 ? stack.top - 16 : reinterpret_cast<std::uintptr_t>(&junk[i]) + i % 7 * 8;
    }
    for (const std::uintptr_t& word : junk) {
      EXPECT_EQ(
          tuza_test_lock_with_frame_pointer(mutex.native_handle(), reinterpret_cast<std::uintptr_t>(&word)),
          0);
      EXPECT_GE(rt::held_locks().front().pcs().size(), 1u);
      mutex.unlock();
    }
  });
}
#endif

TEST_F(HeldMutex, WhatIsGivenBackBeforeAParkDoesNotMatter) {
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

TEST_F(HeldMutex, AMutexOfTuzaMayBeHeld) {
  run_with(2, [] {
    Mutex mutex;
    const std::scoped_lock lock(mutex);
    sleep_for(1ms);
  });
}

TEST_F(HeldMutex, AGoroutineThatOwnsItsThreadMayHoldOne) {
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
