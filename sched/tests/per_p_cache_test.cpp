// The free lists of the layers above: how much they keep, and that they give back what they were given.
#include <gtest/gtest.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/rt/enter.h>
#include <tuza/sched/rt/memory/per_p_cache.h>
#include <tuza/sched/tests/testing.h>

#include <cstddef>
#include <set>
#include <vector>

namespace tuza::rt {
namespace {

using tuza::testing::run_with;

PerPCache& cache() {
  static PerPCache instance;
  return instance;
}

// Calls `f` inside the runtime, where nobody takes the goroutine's P, as a busy machine and the chaos build do elsewhere.
template <class F>
void with_p(F f) {
  for (;;) {
    yield();  // takes a P if there is none
    const Enter rt;
    if (rt.p() != nullptr) return f();
  }
}

TEST(PerPCacheTest, KeepsSoManyAndGivesEachBackOnce) {
  constexpr std::size_t kAll = PerPCache::kLocalMax + PerPCache::kSharedMax;
  std::vector<CacheNode> nodes(kAll + 1);
  for (int round = 0; round < 2; ++round) {
    std::set<CacheNode*> kept;
    const auto fill = [&] {
      EXPECT_EQ(cache().take(), nullptr);
      for (CacheNode& node : nodes) {
        const bool local = cache().put(&node);
        EXPECT_EQ(local, kept.size() < PerPCache::kLocalMax);
        if (local || cache().put_surplus(&node)) kept.insert(&node);
      }
      EXPECT_EQ(kept.size(), kAll);
      EXPECT_FALSE(kept.contains(&nodes.back()));
      // The last local one comes first: it is warm.
      CacheNode* const warm = cache().take();
      EXPECT_EQ(warm, &nodes[PerPCache::kLocalMax - 1]);
      EXPECT_TRUE(cache().put(warm));
    };
    run_with(1, [&] { with_p(fill); });
    // What a P has kept outlives it.
    const auto empty = [&] {
      for (CacheNode* node = cache().take(); node != nullptr; node = cache().take()) {
        EXPECT_EQ(kept.erase(node), 1u);
      }
      EXPECT_TRUE(kept.empty());
      EXPECT_TRUE(cache().put(&nodes[0]));
      EXPECT_EQ(cache().take(), &nodes[0]);
    };
    run_with(1, [&] { with_p(empty); });
  }
}

TEST(PerPCacheTest, WithoutAPNothingIsKeptLocally) {
  CacheNode node;
  EXPECT_FALSE(cache().put(&node));
  EXPECT_TRUE(cache().put_surplus(&node));
  EXPECT_EQ(cache().take(), &node);
}

}  // namespace
}  // namespace tuza::rt
