#include <gtest/gtest.h>
#include <tuza/sched/rt/g.h>
#include <tuza/sched/rt/queue/g_list_inline.h>
#include <tuza/sched/rt/queue/global_queue.h>
#include <tuza/sched/rt/queue/steal_order.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <span>
#include <thread>
#include <vector>

namespace tuza::rt {
namespace {

// Rule 4: min(len / procs + 1, len / 2), at least one, at most the room that the caller has.
TEST(GlobalQueue, ABatchIsAFairShareAtLeastOneAtMostHalf) {
  struct Case {
    std::uint32_t length, procs, limit, expected;
  };
  for (const Case& c : std::vector<Case>{{0, 2, 128, 0},
                                         {1, 2, 128, 1},
                                         {2, 1, 128, 1},
                                         {3, 2, 128, 1},
                                         {10, 1, 128, 5},
                                         {10, 2, 128, 5},
                                         {10, 4, 128, 3},
                                         {100, 4, 128, 26},
                                         {1000, 2, 128, 128},
                                         {1000, 256, 128, 4}}) {
    EXPECT_EQ(GlobalQueue::batch_size(c.length, c.procs, c.limit), c.expected)
        << c.length << " goroutines, " << c.procs << " Ps";
  }
}

TEST(GlobalQueue, IsFirstInFirstOutWhileItGrowsAndWraps) {
  GlobalQueue queue;
  std::vector<G> gs(5000);
  std::deque<G*> model;
  std::array<G*, 128> out;
  std::size_t next = 0;
  while (next < gs.size()) {
    for (int i = 0; i < 300 && next < gs.size(); ++i) {
      queue.push(&gs[next]);
      model.push_back(&gs[next++]);
    }
    const std::uint32_t n = queue.pop_batch(1, out);
    for (std::uint32_t i = 0; i < n; ++i) {
      ASSERT_EQ(out[i], model.front());
      model.pop_front();
    }
    ASSERT_EQ(queue.size(), model.size());
  }
  while (const std::uint32_t n = queue.pop_batch(1, out)) {
    for (std::uint32_t i = 0; i < n; ++i) {
      ASSERT_EQ(out[i], model.front());
      model.pop_front();
    }
  }
  EXPECT_TRUE(model.empty());
}

TEST(GlobalQueue, MovesTheChosenOnesInTheirOrder) {
  GlobalQueue from, to;
  std::vector<G> gs(1000);
  for (std::size_t i = 0; i < gs.size(); ++i) {
    gs[i].waits_begun = static_cast<std::uint32_t>(i % 3);
    from.push(&gs[i]);
  }
  G before;
  to.push(&before);
  from.move_to(to, [](const G& g) { return g.waits_begun == 1; });
  std::vector<G*> kept, moved;
  G* g = nullptr;
  while (from.pop_batch(1, std::span(&g, 1)) == 1) kept.push_back(g);
  while (to.pop_batch(1, std::span(&g, 1)) == 1) moved.push_back(g);
  ASSERT_EQ(kept.size(), 667U);
  ASSERT_EQ(moved.size(), 334U);
  EXPECT_EQ(moved[0], &before);
  for (std::size_t i = 1; i < moved.size(); ++i) EXPECT_EQ(moved[i], &gs[3 * (i - 1) + 1]);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));  // kept in their order, one behind the other
}

TEST(GlobalQueue, PushFrontGoesFirst) {
  GlobalQueue queue;
  std::array<G, 3> gs;
  queue.push(&gs[0]);
  queue.push_front(&gs[1]);
  queue.push_front(&gs[2]);
  std::array<G*, 1> out;
  for (const int expected : {2, 1, 0}) {
    ASSERT_EQ(queue.pop_batch(1, out), 1u);
    EXPECT_EQ(out[0], &gs[static_cast<std::size_t>(expected)]);
  }
  EXPECT_EQ(queue.pop_batch(1, out), 0u);
}

TEST(GlobalQueue, TakesListsInOrder) {
  GlobalQueue queue;
  std::array<G, 4> gs;
  GList list;
  for (G& g : gs) list.push_back(&g);
  queue.push(std::move(list));
  EXPECT_TRUE(list.empty());
  std::array<G*, 1> out;
  for (G& g : gs) {
    ASSERT_EQ(queue.pop_batch(1, out), 1u);
    EXPECT_EQ(out[0], &g);
  }
}

TEST(GlobalQueue, LosesNothingBetweenThreads) {
  constexpr int kPushers = 2, kEach = 20'000;
  GlobalQueue queue;
  std::vector<G> gs(kPushers * kEach);
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kPushers; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) queue.push(&gs[static_cast<std::size_t>(t * kEach + i)]);
    });
    threads.emplace_back([&] {
      std::array<G*, 16> out;
      while (taken.load() < kPushers * kEach) {
        const std::uint32_t n = queue.pop_batch(2, out);
        for (std::uint32_t i = 0; i < n; ++i) ++out[i]->rt_depth;  // a second taker would be a data race
        taken += static_cast<int>(n);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const G& g : gs) ASSERT_EQ(g.rt_depth, 1u);
}

TEST(StealOrder, HasFourRoundsEachInARandomOrder) {
  for (const std::uint32_t ps : {1u, 2u, 3u, 8u, 30u, 256u}) {
    Random random(ps);
    std::set<std::vector<std::uint32_t>> orders;
    for (int thief = 0; thief < 25; ++thief) {
      StealOrder order(random, ps);
      for (int round = 1; round <= 4; ++round) {
        std::vector<std::uint32_t> visited;
        for (std::uint32_t i = 0; i < ps; ++i) {
          const std::optional<StealOrder::Visit> visit = order.next();
          ASSERT_TRUE(visit);
          EXPECT_EQ(visit->last_round, round == 4);
          visited.push_back(visit->p);
        }
        orders.insert(visited);
        std::sort(visited.begin(), visited.end());
        for (std::uint32_t i = 0; i < ps; ++i) ASSERT_EQ(visited[i], i);
      }
      EXPECT_FALSE(order.next());
    }
    EXPECT_GE(orders.size(), std::min(ps, 20u)) << ps << " Ps";
  }
}

TEST(GList, KeepsOrderAndSizeThroughEveryOperation) {
  std::array<G, 5> gs;
  GList list;
  list.push_back(&gs[1]);
  list.push_back(&gs[2]);
  list.push_front(&gs[0]);
  GList more;
  more.push_back(&gs[3]);
  more.push_back(&gs[4]);
  list.splice_back(std::move(more));
  EXPECT_EQ(list.size(), 5u);
  EXPECT_TRUE(list.remove(&gs[4]));
  EXPECT_TRUE(list.remove(&gs[0]));
  EXPECT_TRUE(list.remove(&gs[2]));
  EXPECT_FALSE(list.remove(&gs[2]));
  list.push_back(&gs[2]);
  EXPECT_EQ(list.pop_front(), &gs[1]);
  EXPECT_EQ(list.pop_front(), &gs[3]);
  EXPECT_EQ(list.pop_front(), &gs[2]);
  EXPECT_EQ(list.pop_front(), nullptr);
  EXPECT_EQ(list.size(), 0u);
}

}  // namespace
}  // namespace tuza::rt
