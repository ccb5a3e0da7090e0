// Goroutines that tuza::run abandons when it ends, and the objects they waited for.
#include <tuza/sched/go.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/tests/waits.h>

#include <chrono>
#include <thread>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using namespace testing;

constexpr int kAbandoned = 3;

void leave_waiters(Waitable& waitable, int procs) {
  run(RunOptions{.max_procs = procs}, [&waitable] {
    for (int i = 0; i < kAbandoned; ++i) go([&waitable] { waitable.wait(); });
    wait_until_all_park();
  });
}

// One goroutine waits and is served.
void use(Waitable& waitable, int procs) {
  run_with(procs, [&waitable] {
    std::atomic<bool> served = false;
    go([&] {
      waitable.wait();
      served = true;
    });
    while (!served) {
      waitable.serve();
      sleep_for(100us);
    }
  });
}

struct Case {
  WaitableKind kind;
  int procs;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (WaitableKind& kind : testing::waitables()) {
    for (const int procs : proc_counts({1, 2})) all.push_back({kind, procs});
  }
  return all;
}

class AbandonedWait : public ::testing::TestWithParam<Case> {
 protected:
  const WaitableKind& kind() { return GetParam().kind; }
  std::unique_ptr<Waitable> make() { return kind().make(); }
};

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  return info.param.kind.name + "_P" + std::to_string(info.param.procs);
}
INSTANTIATE_TEST_SUITE_P(All, AbandonedWait, ::testing::ValuesIn(cases()), name_of);

TEST_P(AbandonedWait, WhatTheyWaitedForMayBeDestroyedAfterwards) {
  const auto waitable = make();
  leave_waiters(*waitable, GetParam().procs);
}

TEST_P(AbandonedWait, WhatTheyWaitedForMayBeUsedOutside) {
  const auto waitable = make();
  leave_waiters(*waitable, GetParam().procs);
  for (int i = 0; i < 2 * kAbandoned; ++i) waitable->serve();
}

TEST_P(AbandonedWait, WhatTheyWaitedForServesTheNextRuntime) {
  const auto waitable = make();
  leave_waiters(*waitable, GetParam().procs);
  if (kind().serves_again) use(*waitable, GetParam().procs);
  leave_waiters(*waitable, GetParam().procs);
}

// The goroutines have been woken but never run.
TEST_P(AbandonedWait, ServedAtTheLastMomentTheyAreForgottenAsWell) {
  const auto waitable = make();
  for (int round = 0; round < 3; ++round) {
    run(RunOptions{.max_procs = GetParam().procs}, [&waitable] {
      for (int i = 0; i < kAbandoned; ++i) go([&waitable] { waitable->wait(); });
      wait_until_all_park();
      waitable->serve();
    });
  }
  if (kind().serves_again_after_last_moment) use(*waitable, GetParam().procs);
}

// A thread that is not a goroutine continues meanwhile.
TEST_P(AbandonedWait, AThreadMayServeThemWhileTheRuntimeEnds) {
  const auto waitable = make();
  std::atomic<bool> stop = false;
  std::thread server([&] {
    while (!stop) {
      waitable->serve();
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < scaled(30); ++i) {
    run(RunOptions{.max_procs = GetParam().procs}, [&waitable] {
      for (int k = 0; k < kAbandoned; ++k) go([&waitable] { waitable->wait(); });
      sleep_for(200us);
    });
  }
  stop = true;
  server.join();
}

// -- exit() while goroutines wait, for one object of each kind. The objects are static, and destructors of statics use
// them.

struct Static {
  std::vector<std::unique_ptr<Waitable>> all;
  ~Static() {
    for (const auto& waitable : all)
      for (int i = 0; i < 2 * kAbandoned; ++i) waitable->serve();
  }
};

enum class Exits { kMain, kGoroutine, kThread };

[[noreturn]] void leave_by_exit(int procs, Exits who) {
  static Static keeper;
  for (WaitableKind& kind : testing::waitables()) keeper.all.push_back(kind.make());
  const int status = run(RunOptions{.max_procs = procs}, [who] {
    for (const auto& waitable : keeper.all)
      for (int i = 0; i < kAbandoned; ++i) go([&waitable] { waitable->wait(); });
    wait_until_all_park();
    if (who == Exits::kGoroutine) {
      go([] { std::exit(5); });
      sleep_for(1h);
    }
    if (who == Exits::kThread) {
      std::thread([] { std::exit(5); }).detach();
      sleep_for(1h);
    }
    return 5;
  });
  std::exit(status);
}

class AbandonedWaitDeathTest : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(P, AbandonedWaitDeathTest, ::testing::ValuesIn(proc_counts({1, 2})));

TEST_P(AbandonedWaitDeathTest, ExitFindsNobodyWaiting) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const Exits who : {Exits::kMain, Exits::kGoroutine, Exits::kThread})
    EXPECT_EXIT(leave_by_exit(GetParam(), who), ::testing::ExitedWithCode(5), "^$|CHAOS_SEED");
}

// -- Special cases.

TEST(Abandoned, ItsArrivalAtABarrierDoesNotCount) {
  int rounds = 0;
  Barrier barrier(2, [&rounds] { ++rounds; });
  run(RunOptions{.max_procs = 2}, [&barrier] {
    go([&barrier] { barrier.arrive_and_wait(); });
    wait_until_all_park();
  });
  run_with(2, [&] {
    WaitGroup group;
    group.go([&barrier] { barrier.arrive_and_wait(); });
    wait_until_all_park();
    EXPECT_EQ(rounds, 0);
    barrier.arrive_and_wait();
    group.wait();
    EXPECT_EQ(rounds, 1);
  });
}

// The goroutine that asks for four permits is first in the queue, then those that ask for one. The first is
// abandoned; those that asked for one must not get the permit.
TEST(Abandoned, WhatOneGivesUpIsNotGivenToAnother) {
  Semaphore semaphore(1);
  run(RunOptions{.max_procs = 1}, [&semaphore] {
    go([&semaphore] { semaphore.acquire(4); });
    wait_until_all_park();
    for (int i = 0; i < kAbandoned; ++i) go([&semaphore] { semaphore.acquire(1); });
    wait_until_all_park();
  });
  EXPECT_TRUE(semaphore.try_acquire(1));
  EXPECT_FALSE(semaphore.try_acquire(1));
}

// A thread waits as well: the end of the runtime must not treat it as a goroutine.
TEST(Abandoned, WaitingThreadsKeepWaiting) {
  Chan<int> chan;
  std::atomic<int> got = 0;
  std::thread receiver([&] { got = chan.recv().value(); });
  run(RunOptions{.max_procs = 2}, [&chan] {
    for (int i = 0; i < kAbandoned; ++i) go([&chan] { chan.recv(); });
    wait_until_all_park();
  });
  while (!chan.try_send(7)) std::this_thread::yield();
  receiver.join();
  EXPECT_EQ(got, 7);
}

TEST(Abandoned, AWriterBehindReadersDoesNotKeepReadersOut) {
  RWMutex mutex;
  mutex.lock_shared();
  run(RunOptions{.max_procs = 2}, [&mutex] {
    go([&mutex] { mutex.lock(); });
    wait_until_all_park();
    EXPECT_FALSE(mutex.try_lock_shared());
  });
  EXPECT_TRUE(mutex.try_lock_shared());
  mutex.unlock_shared();
  mutex.unlock_shared();
  EXPECT_TRUE(mutex.try_lock()) << "one writer has gone, others may come";
  mutex.unlock();
}

TEST(Abandoned, ASelectsCaseMayBeUsedAgain) {
  Chan<int> chan;
  auto receive = on_recv(chan);
  run(RunOptions{.max_procs = 1}, [&receive] {
    go([&receive] { select(receive, on_timeout(1h, [] {})); });
    wait_until_all_park();
  });
  run_with(1, [&] {
    go([&chan] { chan.send(1); });
    EXPECT_EQ(select(receive, on_timeout(1h, [] {})), 0u);
  });
}

TEST(Abandoned, GroupsAndScopesDoNotWaitForThem) {
  ErrorGroup group;
  Scope scope;
  run(RunOptions{.max_procs = 2}, [&] {
    group.go([] { sleep_for(1h); });
    scope.go([] { sleep_for(1h); });
    wait_until_all_park();
  });
}

// What abandoned goroutines own is not destroyed, and LeakSanitizer must not report it: the whole program is
// the test.
TEST(Abandoned, WhatTheyOwnStays) {
  static std::atomic<int> alive;
  alive = 0;
  struct Counted {
    Counted() { ++alive; }
    ~Counted() { --alive; }
    std::vector<std::string> more{std::string(100, 'x'), std::string(100, 'y')};
  };
  for (const int procs : {1, 2}) {
    run(RunOptions{.max_procs = procs}, [] {
      go([owned = std::make_unique<Counted>()] { sleep_for(1h); });
      go([] {
        const auto owned = std::make_unique<Counted>();
        Chan<int>().recv();
      });
      wait_until_all_park();
      for (int i = 0; i < 10; ++i)
        go([owned = std::make_shared<Counted>()] { sleep_for(1h); });  // may never run
    });
  }
  EXPECT_EQ(alive, 24);
}

}  // namespace
}  // namespace tuza
