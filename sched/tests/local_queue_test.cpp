// The LRQ, at the capacity it ships with and at 4, where every index wraps early.
#include <gtest/gtest.h>
#include <tuza/sched/rt/queue/local_queue.h>
#include <tuza/sched/tests/testing.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <thread>
#include <vector>

namespace tuza::rt {
namespace {

struct Item {
  std::uint32_t number = 0;
  std::atomic<int> taken{0};
};

template <class Capacity>
class LocalQueueTest : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kCapacity = Capacity::value;
  using Queue = LocalQueue<Item, kCapacity>;
};
using Capacities =
    ::testing::Types<std::integral_constant<std::uint32_t, 4>, std::integral_constant<std::uint32_t, 256>>;
TYPED_TEST_SUITE(LocalQueueTest, Capacities);

TYPED_TEST(LocalQueueTest, IsFirstInFirstOut) {
  typename TestFixture::Queue queue;
  typename TestFixture::Queue::Owner owner(queue);
  std::array<Item, TestFixture::kCapacity> items;
  for (int round = 0; round < 10; ++round) {  // wraps several times
    for (Item& item : items) ASSERT_TRUE(owner.push(&item));
    EXPECT_EQ(queue.size(), TestFixture::kCapacity);
    for (Item& item : items) ASSERT_EQ(owner.pop(), &item);
    EXPECT_EQ(owner.pop(), nullptr);
    EXPECT_TRUE(queue.empty());
  }
}

TYPED_TEST(LocalQueueTest, RefusesMoreThanItsCapacity) {
  typename TestFixture::Queue queue;
  typename TestFixture::Queue::Owner owner(queue);
  std::array<Item, TestFixture::kCapacity + 1> items;
  for (std::size_t i = 0; i < TestFixture::kCapacity; ++i) ASSERT_TRUE(owner.push(&items[i]));
  EXPECT_FALSE(owner.push(&items.back()));
  ASSERT_EQ(owner.pop(), &items[0]);
  EXPECT_TRUE(owner.push(&items.back()));
}

TYPED_TEST(LocalQueueTest, TakeHalfTakesTheOlderHalfOfAFullQueueOnly) {
  constexpr std::uint32_t kHalf = TestFixture::kCapacity / 2;
  typename TestFixture::Queue queue;
  typename TestFixture::Queue::Owner owner(queue);
  std::array<Item, TestFixture::kCapacity> items;
  std::array<Item*, kHalf> half{};
  for (std::size_t i = 0; i + 1 < items.size(); ++i) ASSERT_TRUE(owner.push(&items[i]));
  EXPECT_EQ(owner.take_half(half), 0u) << "not full";
  ASSERT_TRUE(owner.push(&items.back()));
  ASSERT_EQ(owner.take_half(half), kHalf);
  for (std::size_t i = 0; i < kHalf; ++i) EXPECT_EQ(half[i], &items[i]);
  for (std::size_t i = kHalf; i < items.size(); ++i) EXPECT_EQ(owner.pop(), &items[i]);
}

TYPED_TEST(LocalQueueTest, AThiefTakesHalfRoundedUp) {
  for (std::uint32_t length = 0; length <= TestFixture::kCapacity; ++length) {
    typename TestFixture::Queue victim, mine;
    typename TestFixture::Queue::Owner victim_owner(victim), my_owner(mine);
    std::array<Item, TestFixture::kCapacity> items;
    for (std::uint32_t i = 0; i < length; ++i) ASSERT_TRUE(victim_owner.push(&items[i]));
    Item* youngest = typename TestFixture::Queue::Thief(victim).steal_half(my_owner);
    const std::uint32_t stolen = length - length / 2;
    if (stolen == 0) {
      EXPECT_EQ(youngest, nullptr);
      continue;
    }
    EXPECT_EQ(youngest, &items[stolen - 1]);
    for (std::uint32_t i = 0; i + 1 < stolen; ++i) EXPECT_EQ(my_owner.pop(), &items[i]);
    EXPECT_EQ(my_owner.pop(), nullptr);
    for (std::uint32_t i = stolen; i < length; ++i) EXPECT_EQ(victim_owner.pop(), &items[i]);
  }
}

TYPED_TEST(LocalQueueTest, AgreesWithADequeOverRandomOperations) {
  constexpr std::uint64_t kSeed = 20261120;
  testing::Random random(kSeed);
  typename TestFixture::Queue queue, other;
  typename TestFixture::Queue::Owner owner(queue), other_owner(other);
  std::deque<Item*> model;
  std::array<Item, 1000> items;
  for (int step = 0; step < 100'000; ++step) {
    switch (random.below(5)) {
      case 0:
      case 1: {
        Item* item = &items[random.below(1000)];
        const bool pushed = owner.push(item);
        ASSERT_EQ(pushed, model.size() < TestFixture::kCapacity) << "seed " << kSeed << " step " << step;
        if (pushed) model.push_back(item);
        break;
      }
      case 2:
      case 3: {
        Item* popped = owner.pop();
        ASSERT_EQ(popped, model.empty() ? nullptr : model.front()) << "seed " << kSeed << " step " << step;
        if (popped != nullptr) model.pop_front();
        break;
      }
      default: {
        Item* youngest = typename TestFixture::Queue::Thief(queue).steal_half(other_owner);
        const std::size_t stolen = model.size() - model.size() / 2;
        for (std::size_t i = 0; i + 1 < stolen; ++i) {
          ASSERT_EQ(other_owner.pop(), model.front());
          model.pop_front();
        }
        ASSERT_EQ(youngest, stolen == 0 ? nullptr : model.front());
        if (stolen > 0) model.pop_front();
      }
    }
    ASSERT_EQ(queue.size(), model.size());
  }
}

// One owner pushes and pops, thieves steal and pop what they stole: every item is taken exactly once.
TYPED_TEST(LocalQueueTest, GivesEachItemToExactlyOneTaker) {
  constexpr int kThieves = 3;
  const int count = testing::scaled(400'000);
  std::vector<Item> items(static_cast<std::size_t>(count));
  typename TestFixture::Queue queue;
  std::atomic<bool> finished{false};
  std::vector<std::thread> thieves;
  for (int t = 0; t < kThieves; ++t) {
    thieves.emplace_back([&queue, &finished] {
      typename TestFixture::Queue mine;
      typename TestFixture::Queue::Owner my_owner(mine);
      while (!finished.load()) {
        Item* item = typename TestFixture::Queue::Thief(queue).steal_half(my_owner);
        for (; item != nullptr; item = my_owner.pop()) item->taken.fetch_add(1);
      }
    });
  }
  typename TestFixture::Queue::Owner owner(queue);
  std::array<Item*, TestFixture::kCapacity / 2> half;
  int pushed = 0;
  for (Item& item : items) {
    while (!owner.push(&item)) {
      const std::uint32_t n = owner.take_half(half);
      for (std::uint32_t i = 0; i < n; ++i) half[i]->taken.fetch_add(1);
    }
    if (++pushed % 3 != 0) continue;
    if (Item* popped = owner.pop(); popped != nullptr) popped->taken.fetch_add(1);
  }
  while (Item* item = owner.pop()) item->taken.fetch_add(1);
  finished = true;
  for (std::thread& thief : thieves) thief.join();
  while (Item* item = owner.pop()) item->taken.fetch_add(1);
  for (const Item& item : items) ASSERT_EQ(item.taken.load(), 1);
}

}  // namespace
}  // namespace tuza::rt
