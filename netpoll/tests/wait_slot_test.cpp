// One goroutine and the poller: every order of announcing, parking and waking.
#include <tuza/netpoll/poll/netpoller.h>
#include <tuza/netpoll/poll/wait_slot.h>
#include <tuza/netpoll/tests/netpoll_testing.h>
#include <tuza/sched/external.h>
#include <tuza/sched/rt/park.h>
#include <tuza/sched/rt/queue/io_source.h>

#include <thread>

namespace tuza::net::testing {
namespace {

class WaitSlotTest : public WithProcs {};
TUZA_WITH_PROCS(WaitSlotTest);

constexpr auto kNever = [] { return false; };

// Goroutines that wait for I/O need a poller.
void run_polled(int procs, const std::function<void()>& body) {
  run_with(procs, [&body] {
    ASSERT_TRUE(Netpoller::get());
    body();
  });
}

// What a waker does with the goroutine that it was given.
bool let_go(rt::G* g) {
  if (g == nullptr) return false;
  rt::io_wait_ends();
  rt::ready(g);
  return true;
}

TEST(WaitSlot, AnEventIsKeptUntilItIsConsumedOnce) {
  WaitSlot slot;
  EXPECT_FALSE(slot.consume());
  EXPECT_EQ(slot.wake(true), nullptr);
  EXPECT_EQ(slot.wake(true), nullptr) << "two events are as good as one";
  EXPECT_TRUE(slot.consume());
  EXPECT_FALSE(slot.consume());
}

TEST(WaitSlot, AReasonToGiveUpIsNotAnEvent) {
  WaitSlot slot;
  EXPECT_EQ(slot.wake(false), nullptr);
  EXPECT_FALSE(slot.consume());
  EXPECT_EQ(slot.wake(true), nullptr);
  EXPECT_EQ(slot.wake(false), nullptr);
  EXPECT_TRUE(slot.consume()) << "it must not take an event away either";
}

TEST(WaitSlot, ResetForgetsTheEvent) {
  WaitSlot slot;
  EXPECT_EQ(slot.wake(true), nullptr);
  slot.reset();
  EXPECT_FALSE(slot.consume());
}

TEST(WaitSlot, DoesNotParkForAnEventThatHasCome) {
  run_polled(1, [] {
    WaitSlot slot;
    EXPECT_EQ(slot.wake(true), nullptr);
    // No event would ever wake it.
    EXPECT_TRUE(slot.wait(WaitReason::kIoRead, kNever));
    EXPECT_FALSE(slot.consume());
  });
}

TEST(WaitSlot, DoesNotParkForAReasonToGiveUpThatIsSeenAfterTheAnnouncement) {
  run_polled(1, [] {
    WaitSlot slot;
    EXPECT_FALSE(slot.wait(WaitReason::kIoRead, [] { return true; }));
    EXPECT_FALSE(slot.consume());
  });
}

TEST(WaitSlot, AnEventBetweenAnnouncementAndParkCancelsThePark) {
  run_polled(1, [] {
    WaitSlot slot;
    const bool event = slot.wait(WaitReason::kIoRead, [&slot] {
      EXPECT_EQ(slot.wake(true), nullptr) << "it is not parked yet";
      return false;
    });
    EXPECT_TRUE(event);
    EXPECT_FALSE(slot.consume());
    // The same for a reason to give up that becomes true after it was checked.
    const bool none = slot.wait(WaitReason::kIoRead, [&slot] {
      EXPECT_EQ(slot.wake(false), nullptr);
      return false;
    });
    EXPECT_FALSE(none);
  });
}

TEST(WaitSlot, AnEventThatComesWithAReasonToGiveUpWins) {
  run_polled(1, [] {
    WaitSlot slot;
    EXPECT_TRUE(slot.wait(WaitReason::kIoRead, [&slot] { return slot.wake(true) == nullptr; }));
  });
}

TEST_P(WaitSlotTest, WakesAParkedGoroutineAndSaysWhy) {
  run_polled(GetParam(), [] {
    const ExternalWaker promise;
    for (const bool event : {true, false}) {
      WaitSlot slot;
      WaitGroup group;
      group.go([&slot, event] { EXPECT_EQ(slot.wait(WaitReason::kIoRead, kNever), event); });
      wait_until_parked(1, WaitReason::kIoRead);
      rt::G* g = nullptr;
      yield_until([&] { return (g = slot.wake(event)) != nullptr; });
      // A parked goroutine is woken once.
      EXPECT_EQ(slot.wake(false), nullptr);
      EXPECT_TRUE(let_go(g));
      group.wait();
      EXPECT_FALSE(slot.consume());
    }
  });
}

// A thread announces events and a goroutine waits for them, as fast as both can: no event that the waker was
// told of may be lost, or the goroutine waits for ever.
TEST_P(WaitSlotTest, NoEventIsLostBetweenAThreadAndAGoroutine) {
  run_polled(GetParam(), [] {
    const int rounds = scaled(20'000);
    WaitSlot there, back;
    long data = 0;  // ordered by the events
    std::thread outside([&, promise = ExternalWaker()] {
      for (int i = 0; i < rounds; ++i) {
        ++data;
        let_go(there.wake(true));
        while (!back.consume()) std::this_thread::yield();
      }
    });
    for (int i = 0; i < rounds; ++i) {
      ASSERT_TRUE(there.wait(WaitReason::kIoRead, kNever));
      ASSERT_EQ(data, i + 1);
      ASSERT_EQ(back.wake(true), nullptr);
    }
    outside.join();
  });
}

// The same for reasons to give up: the flag is written first, then the goroutine is taken out of the slot.
TEST_P(WaitSlotTest, NoReasonToGiveUpIsMissed) {
  run_polled(GetParam(), [] {
    const int rounds = scaled(20'000);
    WaitSlot slot;
    std::atomic<int> given_up{0}, seen{0};
    std::thread outside([&, promise = ExternalWaker()] {
      for (int i = 1; i <= rounds; ++i) {
        given_up.store(i, std::memory_order_seq_cst);
        let_go(slot.wake(false));
        while (seen != i) std::this_thread::yield();
      }
    });
    for (int i = 1; i <= rounds; ++i) {
      // Woken for a reason that the previous round has already seen, the goroutine waits again.
      const auto reason = [&given_up, i] { return given_up.load(std::memory_order_seq_cst) >= i; };
      while (!reason()) ASSERT_FALSE(slot.wait(WaitReason::kIoRead, reason));
      seen = i;
    }
    outside.join();
  });
}

TEST(WaitSlotDeathTest, TwoWaitersAreABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run([] {
                 WaitSlot slot;
                 (void)slot.wait(WaitReason::kIoRead, [&slot] {
                   (void)slot.wait(WaitReason::kIoRead, kNever);
                   return true;
                 });
               }),
               "two goroutines wait for one direction");
}

}  // namespace
}  // namespace tuza::net::testing
