// Waits in several queues at once, by goroutines and threads: served once, ended once, never lost.
#include <tuza/sched/detail/deadline.h>
#include <tuza/sched/external.h>
#include <tuza/sched/sync/detail/event.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <memory>
#include <thread>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using rt::Event;
using rt::Until;
using namespace testing;

class WaitTest : public WithProcs {};
TUZA_WITH_PROCS(WaitTest);

TEST_P(WaitTest, AnEventReleasesAllWaiters) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(500); ++round) {
      Event event;
      int written = 0;  // a plain int: TSan checks the ordering
      WaitGroup group;
      for (int i = 0; i < 5; ++i) {
        group.go([&] {
          EXPECT_TRUE(event.wait(WaitReason::kTest));
          EXPECT_EQ(written, 1);
        });
      }
      if (round % 2 == 0) yield();
      written = 1;
      EXPECT_TRUE(event.fire());
      EXPECT_FALSE(event.fire());
      group.wait();
    }
  });
}

TEST_P(WaitTest, ThreadsAndGoroutinesWakeEachOther) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(200); ++round) {
      Event to_thread, to_goroutine;
      std::thread thread([&, promise = ExternalWaker()] {
        EXPECT_TRUE(to_thread.wait(WaitReason::kTest));
        to_goroutine.fire();
      });
      to_thread.fire();
      EXPECT_TRUE(to_goroutine.wait(WaitReason::kTest));
      thread.join();
    }
  });
}

TEST(WaitTest, NeedsNoRuntimeForThreads) {
  Event event;
  std::thread thread([&] { EXPECT_TRUE(event.wait(WaitReason::kTest)); });
  event.fire();
  thread.join();
  Event never;
  EXPECT_FALSE(never.wait(WaitReason::kTest, Until{.deadline_ns = rt::deadline_after(1ms)}));
}

// The event, the end of the context and the deadline come at about the same time: one of them wins, and the
// others leave nothing behind (ASan reports any later access to the wait).
TEST_P(WaitTest, RacesHaveOneWinner) {
  run_with(GetParam(), [] {
    int served = 0, ended = 0;
    for (int round = 0; round < scaled(2'000); ++round) {
      auto event = std::make_unique<Event>();
      auto end = std::make_unique<Event>();
      WaitGroup group;
      group.go([&] { event->fire(); });
      group.go([&] { end->fire(); });
      const std::int64_t deadline_ns = rt::deadline_after(round % 3 == 0 ? 2us : 1s);
      const bool happened =
          event->wait(WaitReason::kTest, Until{.event = end.get(), .deadline_ns = deadline_ns});
      ++(happened ? served : ended);
      group.wait();
    }
    EXPECT_EQ(served + ended, scaled(2'000));
  });
}

TEST_P(WaitTest, AnEndThatCameBeforeIsSeenAtOnce) {
  run_with(GetParam(), [] {
    Event event, end;
    end.fire();
    EXPECT_FALSE(event.wait(WaitReason::kTest, Until{.event = &end}));
    EXPECT_FALSE(event.wait(WaitReason::kTest, Until{.deadline_ns = rt::deadline_after(-1ns)}));
    event.fire();
    EXPECT_TRUE(event.wait(WaitReason::kTest, Until{.event = &end}));
  });
}

TEST_P(WaitTest, DeadlinesOfManyEndTheirWaits) {
  run_with(GetParam(), [] {
    Event never;
    WaitGroup group;
    for (int i = 0; i < scaled(500) + 8; ++i) {
      group.go([&never, i] {
        EXPECT_FALSE(never.wait(WaitReason::kTest, Until{.deadline_ns = rt::deadline_after(i * 10us)}));
      });
    }
    group.wait();
  });
}

}  // namespace
}  // namespace tuza
