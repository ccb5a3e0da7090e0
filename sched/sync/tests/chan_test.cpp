// Channels: the facts stated by Go's specification and its memory model, one by one; and the additions of
// C++: lifetimes, moves and threads.
#include <tuza/sched/external.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/context.h>
#include <tuza/sched/sync/tests/chan_testing.h>
#include <tuza/sched/sync/tests/counting_new.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using namespace testing;

class ChanTest : public WithProcs {};
TUZA_WITH_PROCS(ChanTest);

TEST_P(ChanTest, TheExampleInTheHeaderWorks) {
  struct Job {
    int number;
  };
  run_with(GetParam(), [] {
    int done = 0;
    Chan<Job> jobs{64};
    WaitGroup group;
    group.go([&] {
      for (auto& job : jobs) done += job.number;
    });
    jobs.send(Job{1});
    jobs.send(Job{2});
    jobs.close();
    group.wait();
    EXPECT_EQ(done, 3);
    EXPECT_FALSE(jobs.recv().has_value());
    const auto job = jobs.try_recv();
    ASSERT_FALSE(job.has_value());
    EXPECT_EQ(job.error(), TryRecvError::kClosed);
  });
}

TEST_P(ChanTest, AnUnbufferedSendEndsAfterAReceiveHasBegun) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(500); ++round) {
      Chan<int> chan;
      int begun = 0;  // plain: TSan checks the ordering
      WaitGroup group;
      group.go([&] {
        begun = 1;
        EXPECT_EQ(chan.recv(), round);
      });
      chan.send(round);
      EXPECT_EQ(begun, 1);
      group.wait();
    }
  });
}

TEST_P(ChanTest, ABufferedSendDoesNotWaitWhileThereIsRoom) {
  run_with(GetParam(), [] {
    Chan<int> chan{3};
    EXPECT_EQ(chan.cap(), 3u);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(chan.len(), static_cast<std::size_t>(i));
      chan.send(i);
    }
    EXPECT_FALSE(chan.try_send(3));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(chan.recv(), i);
    EXPECT_EQ(chan.try_recv().error(), TryRecvError::kEmpty);
  });
}

TEST_P(ChanTest, WhatIsInTheBufferWhenItIsClosedIsStillReceived) {
  run_with(GetParam(), [] {
    Chan<std::string> chan{4};
    chan.send("a");
    chan.send("b");
    chan.close();
    EXPECT_EQ(chan.len(), 2u);
    EXPECT_EQ(chan.recv(), "a");
    EXPECT_EQ(chan.try_recv().value(), "b");
    for (int i = 0; i < 3; ++i) EXPECT_EQ(chan.recv(), std::nullopt);
    EXPECT_EQ(chan.try_recv().error(), TryRecvError::kClosed);
  });
}

TEST_P(ChanTest, CloseLetsAllReceiversGo) {
  run_with(GetParam(), [] {
    Chan<int> chan;
    int written = 0;
    WaitGroup group;
    for (int i = 0; i < 8; ++i) {
      group.go([&] {
        EXPECT_EQ(chan.recv(), std::nullopt);
        EXPECT_EQ(written, 1);
      });
    }
    until_waiting(chan, 8);
    written = 1;
    chan.close();
    group.wait();
  });
}

TEST_P(ChanTest, ReceiversThatWaitAreServedInTheirOrder) {
  run_with(GetParam(), [] {
    Chan<int> chan;
    std::vector<int> got(6, -1);
    WaitGroup group;
    for (std::size_t i = 0; i < got.size(); ++i) {
      group.go([&, i] { got[i] = chan.recv().value(); });
      until_waiting(chan, i + 1);
    }
    for (int i = 0; i < 6; ++i) chan.send(i);
    group.wait();
    EXPECT_EQ(got, (std::vector<int>{0, 1, 2, 3, 4, 5}));
  });
}

TEST_P(ChanTest, SendersThatWaitAreServedInTheirOrderBehindTheBuffer) {
  for (const std::size_t capacity : {0u, 1u, 3u}) {
    run_with(GetParam(), [capacity] {
      Chan<std::size_t> chan{capacity};
      for (std::size_t i = 0; i < capacity; ++i) chan.send(i);
      WaitGroup group;
      for (std::size_t i = 0; i < 5; ++i) {
        group.go([&, i] { chan.send(capacity + i); });
        until_waiting(chan, i + 1);
      }
      for (std::size_t i = 0; i < capacity + 5; ++i) EXPECT_EQ(chan.recv(), i);
      group.wait();
    });
  }
}

// A channel of capacity C is a semaphore of C permits: the k-th receive comes before the end of the (k+C)-th
// send.
TEST_P(ChanTest, OneOfCapacityOneIsAMutex) {
  run_with(GetParam(), [] {
    Chan<int> mutex{1};
    int inside = 0;  // plain
    WaitGroup group;
    for (int i = 0; i < 4; ++i) {
      group.go([&] {
        for (int k = 0; k < scaled(2'000); ++k) {
          mutex.send(0);
          ++inside;
          mutex.recv();
        }
      });
    }
    group.wait();
    EXPECT_EQ(inside, 4 * scaled(2'000));
  });
}

TEST_P(ChanTest, MoveOnlyElementsGoThroughAndRangesGiveThemAway) {
  run_with(GetParam(), [] {
    Chan<std::unique_ptr<int>> chan{2};
    WaitGroup group;
    group.go([&] {
      for (int i = 0; i < 10; ++i) chan.send(std::make_unique<int>(i));
      chan.close();
    });
    int next = 0;
    std::vector<std::unique_ptr<int>> taken;
    for (auto& p : chan) {
      EXPECT_EQ(*p, next++);
      taken.push_back(std::move(p));
    }
    EXPECT_EQ(next, 10);
    EXPECT_EQ(*taken.back(), 9);
    group.wait();
  });
}

TEST_P(ChanTest, ALoopMayCopyReferToAndChangeTheElement) {
  run_with(GetParam(), [] {
    Chan<std::string> chan{3};
    const auto fill = [&chan] {
      for (const char* text : {"a", "b", "c"}) chan.send(text);
    };
    const auto three_of = [](auto& range, auto each) {
      int left = 3;
      auto at = range.begin();
      each(*at);
      while (--left > 0) each(*++at);
    };
    std::string seen;
    fill();
    three_of(chan, [&](std::string& text) { seen += std::exchange(text, "changed"); });
    fill();
    three_of(chan, [&](const std::string& text) { seen += text; });
    fill();
    chan.close();
    for (auto text : chan) seen += text;
    EXPECT_EQ(seen, "abcabcabc");
  });
  static_assert(std::ranges::input_range<Chan<std::string>>);
  static_assert(std::same_as<std::ranges::range_reference_t<Chan<std::string>>, std::string&>);
}

TEST(ChanTest, ATrialThatFailsLeavesTheValueAlone) {
  Chan<std::unique_ptr<int>> chan{1};
  auto value = std::make_unique<int>(1);
  EXPECT_TRUE(chan.try_send(std::move(value)));
  EXPECT_EQ(value, nullptr);
  value = std::make_unique<int>(2);
  EXPECT_FALSE(chan.try_send(std::move(value)));
  ASSERT_NE(value, nullptr);
  EXPECT_EQ(*value, 2);
  EXPECT_EQ(**chan.try_recv(), 1);
}

TEST_P(ChanTest, TryCallsMeetWaiters) {
  run_with(GetParam(), [] {
    Chan<int> chan;
    EXPECT_FALSE(chan.try_send(1));
    EXPECT_FALSE(chan.try_recv().has_value());
    WaitGroup group;
    group.go([&] { EXPECT_EQ(chan.recv(), 2); });
    until_waiting(chan, 1);
    EXPECT_TRUE(chan.try_send(2));
    group.wait();
    group.go([&] { chan.send(3); });
    until_waiting(chan, 1);
    EXPECT_EQ(chan.try_recv().value(), 3);
    group.wait();
  });
}

TEST_P(ChanTest, ViewsAreItsEnds) {
  run_with(GetParam(), [] {
    Chan<int> chan{1};
    const SendChan<int> out = chan;
    const RecvChan<int> in = chan;
    EXPECT_TRUE(out && in);
    out.send(7);
    EXPECT_EQ(in.len(), 1u);
    EXPECT_EQ(out.cap(), 1u);
    EXPECT_EQ(in.recv(), 7);
    out.close();
    for (int x : in) ADD_FAILURE() << x;
  });
}

TEST(ChanTest, NilIsNeverReady) {
  const SendChan<int> out;
  const RecvChan<int> in;
  EXPECT_FALSE(out || in);
  EXPECT_FALSE(out.try_send(1));
  EXPECT_EQ(in.try_recv().error(), TryRecvError::kEmpty);
  EXPECT_EQ(in.len() + in.cap() + out.len() + out.cap(), 0u);
}

// Counts its moves and its objects.
struct Counted {
  inline static std::atomic<int> alive{0}, moves{0};
  explicit Counted(int n) : number(n) { ++alive; }
  Counted(Counted&& other) noexcept : number(std::exchange(other.number, -1)) {
    ++alive;
    ++moves;
  }
  Counted(const Counted&) = delete;
  ~Counted() { --alive; }
  int number;
};

TEST_P(ChanTest, AnElementMovesIntoItsReceiverAndItsResultAndNoneLeaks) {
  run_with(GetParam(), [] {
    for (const std::size_t capacity : {0u, 1u, 2u}) {
      Counted::moves = 0;
      {
        Chan<Counted> chan{capacity};
        WaitGroup group;
        group.go([&] {
          for (int i = 0; i < 100; ++i) chan.send(Counted(i));
        });
        for (int i = 0; i < 100; ++i) EXPECT_EQ(chan.recv()->number, i);
        group.wait();
        // One move into the receiver, or one into the buffer and one out of it; and one into the result of
        // recv().
        EXPECT_LE(Counted::moves.load(), (capacity == 0 ? 2 : 3) * 100);
        for (std::size_t i = 0; i < capacity; ++i) chan.send(Counted(0));
      }
      EXPECT_EQ(Counted::alive.load(), 0);
    }
  });
}

TEST_P(ChanTest, TheReceiverOfTheLastElementMayDestroyTheChannel) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(2'000); ++round) {
      auto chan = std::make_unique<Chan<int>>(static_cast<std::size_t>(round % 2));
      WaitGroup group;
      group.go([c = chan.get()] { c->send(1); });
      if (round % 3 == 0) yield();
      EXPECT_EQ(chan->recv(), 1);
      chan.reset();
      group.wait();
    }
  });
}

TEST_P(ChanTest, AContextEndsTheWait) {
  run_with(GetParam(), [] {
    Chan<int> chan;
    auto [context, cancel] = with_cancel(Context::background());
    WaitGroup group;
    group.go([&, ctx = context] {
      const auto got = chan.recv(ctx);
      ASSERT_FALSE(got.has_value());
      EXPECT_TRUE(got.error().cancelled());
    });
    until_waiting(chan, 1);
    cancel();
    group.wait();
    EXPECT_EQ(waiting(chan), 0u);
    EXPECT_TRUE(chan.send(context, 1).error().cancelled());
    EXPECT_TRUE(RecvChan<int>().recv(context).error().cancelled());
    const auto soon = with_timeout(Context::background(), 1ms);
    EXPECT_TRUE(SendChan<int>().send(soon.ctx(), 1).error().timeout());
    EXPECT_TRUE(chan.send(soon.ctx(), 1).error().timeout());
  });
}

TEST_P(ChanTest, ALiveContextChangesNothing) {
  run_with(GetParam(), [] {
    Chan<int> chan{1};
    auto [context, cancel] = with_cancel(Context::background());
    for (const Context& ctx : {Context::background(), context}) {
      WaitGroup group;
      group.go([&] {
        for (int i = 0; i < 20; ++i) EXPECT_TRUE(chan.send(ctx, i).has_value());
      });
      for (int i = 0; i < 20; ++i) EXPECT_EQ(chan.recv(ctx).value(), i);
      group.wait();
    }
    chan.close();
    EXPECT_EQ(chan.recv(context).value(), std::nullopt);
  });
}

// A send that its context ended has not happened; a send that returned successfully has.
TEST_P(ChanTest, NothingIsLostOrDoubledWhenContextsEnd) {
  run_with(GetParam(), [] {
    for (int round = 0; round < scaled(1'000); ++round) {
      Chan<int> chan{static_cast<std::size_t>(round % 2)};
      auto [context, cancel] = with_cancel(Context::background());
      int sent = 0, received = 0;
      WaitGroup group;
      group.go([&, ctx = context] { sent = chan.send(ctx, 1).has_value() ? 1 : 0; });
      group.go([&, ctx = context] { received = chan.recv(ctx).has_value() ? 1 : 0; });
      group.go([&] { cancel(); });
      group.wait();
      EXPECT_EQ(sent, received + static_cast<int>(chan.len()));
    }
  });
}

TEST(ChanTest, NeedsNoRuntimeForThreads) {
  Chan<int> chan{1};
  long sum = 0;
  std::thread consumer([&] {
    for (int x : chan) sum += x;
  });
  for (int i = 1; i <= 1'000; ++i) chan.send(i);
  chan.close();
  consumer.join();
  EXPECT_EQ(sum, 500'500);
}

TEST_P(ChanTest, ALoopThatIsLeftLeavesTheRest) {
  run_with(GetParam(), [] {
    Chan<int> chan{4};
    for (int i = 0; i < 4; ++i) chan.send(i);
    try {
      for (int x : chan) {
        if (x == 1) throw x;
      }
    } catch (int) {
      EXPECT_EQ(chan.recv(), 2);
    }
    WaitGroup group;
    group.go([&] {
      for (int x : chan) {
        EXPECT_EQ(x, 3);
        goexit();
      }
    });
    group.wait();
    EXPECT_EQ(chan.len(), 0u);
  });
}

TEST_P(ChanTest, NothingIsAllocatedOnTheWay) {
  if (!testing::kCountsAllocations) GTEST_SKIP();
  run_with(GetParam(), [] {
    for (const std::size_t capacity : {0u, 1u, 128u}) {
      Chan<int> there{capacity}, back{capacity};
      WaitGroup group;
      group.go([&] {
        for (int x : there) back.send(x);
        back.close();
      });
      std::uint64_t before = 0;
      for (int i = 0; i < 200; ++i) {
        if (i == 100) before = testing::allocations();
        there.send(i);
        EXPECT_EQ(back.recv(), i);
      }
      EXPECT_EQ(testing::allocations(), before);
      there.close();
      group.wait();
    }
  });
}

}  // namespace
}  // namespace tuza
