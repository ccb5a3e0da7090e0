// Which calls may use a descriptor, and which of them closes its number.
#include <tuza/netpoll/poll/fd_mutex.h>
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/sched/sync/context.h>

#include <algorithm>
#include <array>
#include <thread>

namespace tuza::net::testing {
namespace {

using Side = FdMutex::Side;

class FdMutexTest : public WithProcs {};
TUZA_WITH_PROCS(FdMutexTest);

TEST(FdMutex, ReferencesAndTheTwoLocksDoNotExcludeEachOther) {
  FdMutex mutex;
  EXPECT_TRUE(mutex.acquire());
  EXPECT_TRUE(mutex.lock(Side::kRead));
  EXPECT_TRUE(mutex.lock(Side::kWrite));
  EXPECT_TRUE(mutex.acquire());
  EXPECT_FALSE(mutex.unlock(Side::kRead));
  EXPECT_TRUE(mutex.lock(Side::kRead)) << "unlocked while the other side was locked";
  EXPECT_FALSE(mutex.unlock(Side::kRead));
  EXPECT_FALSE(mutex.release());
  EXPECT_FALSE(mutex.unlock(Side::kWrite));
  EXPECT_FALSE(mutex.release());
  EXPECT_FALSE(mutex.closed());
}

TEST(FdMutex, NothingIsGivenOutOnceItIsClosed) {
  FdMutex mutex;
  EXPECT_TRUE(mutex.close());
  EXPECT_TRUE(mutex.closed());
  EXPECT_FALSE(mutex.acquire());
  EXPECT_FALSE(mutex.lock(Side::kRead));
  EXPECT_FALSE(mutex.lock(Side::kWrite));
  EXPECT_FALSE(mutex.close()) << "only one caller closes";
  EXPECT_TRUE(mutex.release()) << "the reference of close() was the only one";
  EXPECT_FALSE(mutex.acquire());
}

TEST(FdMutex, IsAsGoodAsNewAfterReset) {
  FdMutex mutex;
  ASSERT_TRUE(mutex.close());
  ASSERT_TRUE(mutex.release());
  mutex.reset();
  EXPECT_FALSE(mutex.closed());
  EXPECT_TRUE(mutex.lock(Side::kRead));
  EXPECT_FALSE(mutex.unlock(Side::kRead));
}

TEST(FdMutex, TheLastUserOfAClosedOneIsToldInEveryOrder) {
  std::array<int, 4> order{0, 1, 2, 3};
  do {
    FdMutex mutex;
    ASSERT_TRUE(mutex.acquire());
    ASSERT_TRUE(mutex.lock(Side::kRead));
    ASSERT_TRUE(mutex.lock(Side::kWrite));
    ASSERT_TRUE(mutex.close());
    for (std::size_t i = 0; i < order.size(); ++i) {
      const bool last = order[i] == 0   ? mutex.unlock(Side::kRead)
                        : order[i] == 1 ? mutex.unlock(Side::kWrite)
                                        : mutex.release();
      ASSERT_EQ(last, i + 1 == order.size()) << "user " << order[i] << " as number " << i;
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_P(FdMutexTest, ALockIsHandedToWaiters) {
  run_with(GetParam(), [] {
    for (const Side side : {Side::kRead, Side::kWrite}) {
      FdMutex mutex;
      int inside = 0;  // guarded by the lock
      ASSERT_TRUE(mutex.lock(side));
      WaitGroup group;
      for (int i = 0; i < 5; ++i) {
        group.go([&] {
          ASSERT_TRUE(mutex.lock(side));
          ++inside;
          EXPECT_FALSE(mutex.unlock(side));
        });
      }
      wait_until_parked(5, WaitReason::kSemaphore);
      EXPECT_EQ(inside, 0);
      EXPECT_FALSE(mutex.unlock(side));
      group.wait();
      EXPECT_EQ(inside, 5);
    }
  });
}

TEST_P(FdMutexTest, ClosingWakesWaitersOfBothLocks) {
  run_with(GetParam(), [] {
    FdMutex mutex;
    ASSERT_TRUE(mutex.lock(Side::kRead));
    ASSERT_TRUE(mutex.lock(Side::kWrite));
    WaitGroup group;
    for (int i = 0; i < 5; ++i) {
      group.go([&mutex, side = i % 2 == 0 ? Side::kRead : Side::kWrite] { EXPECT_FALSE(mutex.lock(side)); });
    }
    wait_until_parked(5, WaitReason::kSemaphore);
    EXPECT_TRUE(mutex.close());
    group.wait();  // while both locks are still held
    EXPECT_FALSE(mutex.unlock(Side::kRead));
    EXPECT_FALSE(mutex.release());
    EXPECT_TRUE(mutex.unlock(Side::kWrite));
  });
}

TEST_P(FdMutexTest, UnderFireLocksExcludeAndExactlyOneUserIsTheLast) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(400); ++round) {
      FdMutex mutex;
      std::array<long, 2> inside{};  // guarded by the lock of the side
      std::array<std::atomic<long>, 2> entered{};
      std::atomic<int> last{0};
      std::atomic<bool> go_on{true};
      WaitGroup group;
      for (int i = 0; i < 6; ++i) {
        group.go([&, side = static_cast<Side>(i % 2)] {
          const auto at = static_cast<std::size_t>(side);
          while (mutex.lock(side)) {
            ++inside[at];
            if (inside[at] % 4 == 0) yield();  // with the lock held
            ++entered[at];
            if (mutex.unlock(side)) ++last;
          }
        });
      }
      // A thread that is not a goroutine only takes references: those never park.
      std::thread outside([&] {
        while (go_on && mutex.acquire()) {
          if (mutex.release()) ++last;
        }
      });
      yield_until([&] { return entered[0] + entered[1] > 50; });
      EXPECT_TRUE(mutex.close());
      if (mutex.release()) ++last;
      group.wait();
      go_on = false;
      outside.join();
      ASSERT_EQ(last, 1);
      ASSERT_EQ(inside[0], entered[0]);
      ASSERT_EQ(inside[1], entered[1]);
    }
  });
}

class FdMutexDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(FdMutexDeathTest, GivingBackWhatOneDoesNotHaveIsABug) {
  EXPECT_DEATH((void)FdMutex().release(), "released too many times");
  EXPECT_DEATH((void)FdMutex().unlock(Side::kRead), "unlocked too many times");
  FdMutex mutex;
  ASSERT_TRUE(mutex.lock(Side::kRead));
  EXPECT_DEATH((void)mutex.unlock(Side::kWrite), "unlocked too many times");
}

// The field for references must not overflow into the field for waiters.
TEST_F(FdMutexDeathTest, AMillionReferencesAreTheLimit) {
  FdMutex mutex;
  constexpr int kMax = (1 << 20) - 1;
  for (int i = 0; i < kMax - 2; ++i) ASSERT_TRUE(mutex.acquire());
  ASSERT_TRUE(mutex.lock(Side::kRead));
  ASSERT_TRUE(mutex.lock(Side::kWrite));
  EXPECT_DEATH((void)mutex.acquire(), "too many users");
  EXPECT_DEATH((void)mutex.close(), "too many users");
  ASSERT_FALSE(mutex.unlock(Side::kWrite));
  ASSERT_TRUE(mutex.acquire());
  EXPECT_DEATH((void)mutex.lock(Side::kWrite), "too many users");
  ASSERT_FALSE(mutex.release());
  ASSERT_TRUE(mutex.close()) << "one below the limit";
}

// The context of a waiter ends at every moment of a handover: no turn is lost, and nobody has two.
TEST_P(FdMutexTest, TheEndOfAContextEndsAWait) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(300) + 6; ++round) {
      FdMutex mutex;
      int inside = 0;
      std::atomic<int> got{0};
      WaitGroup group;
      for (int i = 0; i < 6; ++i) {
        group.go([&, i] {
          const auto [ctx, cancel] = with_timeout(
              Context::background(), std::chrono::microseconds(i % 2 == 0 ? round % 60 : 1'000'000));
          if (!mutex.lock(Side::kRead, &ctx)) {
            EXPECT_TRUE(ctx.done());
            return;
          }
          EXPECT_EQ(inside++, 0);
          if (i % 3 == 0) sleep_for(std::chrono::microseconds(20));
          --inside;
          ++got;
          EXPECT_FALSE(mutex.unlock(Side::kRead));
        });
      }
      group.wait();
      EXPECT_GE(got, 3) << "those whose contexts have not ended";
      EXPECT_TRUE(mutex.lock(Side::kRead)) << "free, and nobody is waiting";
      EXPECT_FALSE(mutex.unlock(Side::kRead));
      EXPECT_TRUE(mutex.close());
      EXPECT_TRUE(mutex.release());
    }
  });
}

}  // namespace
}  // namespace tuza::net::testing
