#include <gtest/gtest.h>
#include <tuza/sched/rt/queue/timer_heap.h>
#include <tuza/sched/tests/testing.h>

#include <atomic>
#include <map>
#include <thread>
#include <vector>

namespace tuza::rt {
namespace {

struct Alarm : Timer {
  Alarm() {
    function = [](Timer& timer) { static_cast<Alarm&>(timer).fired.fetch_add(1); };
  }
  std::atomic<int> fired{0};
};

TEST(TimerHeap, FiresInOrderOfTimeAndNeverEarly) {
  TimerHeap heap;
  std::vector<std::int64_t> order;
  struct Ordered : Timer {
    std::vector<std::int64_t>* order = nullptr;
  };
  std::vector<Ordered> timers(1000);
  testing::Random random(7);
  for (Ordered& timer : timers) {
    timer.order = &order;
    timer.function = [](Timer& t) { static_cast<Ordered&>(t).order->push_back(t.when_ns); };
    heap.add(timer, random.below(10'000));
  }
  for (std::int64_t now = 0; now <= 10'000; now += 100) {
    heap.run_due(now);
    for (const std::int64_t when : order) ASSERT_LE(when, now);
  }
  EXPECT_EQ(order.size(), timers.size());
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
  EXPECT_EQ(heap.next_ns(), TimerHeap::kNever);
}

TEST(TimerHeap, AgreesWithAMapOverRandomOperations) {
  constexpr std::uint64_t kSeed = 4;
  testing::Random random(kSeed);
  TimerHeap heap;
  std::vector<Alarm> timers(300);
  std::multimap<std::int64_t, Alarm*> model;
  const auto find = [&model](Alarm* alarm) {
    return std::find_if(model.begin(), model.end(), [alarm](auto& e) { return e.second == alarm; });
  };
  for (int step = 0; step < 50'000; ++step) {
    Alarm* alarm = &timers[random.below(300)];
    const auto at = find(alarm);
    const std::int64_t when = random.below(100'000);
    switch (random.below(4)) {
      case 0:
        if (at == model.end()) {
          heap.add(*alarm, when);
          model.emplace(when, alarm);
        }
        break;
      case 1:
        ASSERT_EQ(heap.move(*alarm, when), at != model.end());
        if (at != model.end()) {
          model.erase(at);
          model.emplace(when, alarm);
        }
        break;
      case 2:
        ASSERT_EQ(heap.remove(*alarm), at != model.end());
        if (at != model.end()) model.erase(at);
        break;
      default:
        if (step % 16 == 0 && !model.empty()) {
          const std::int64_t now = model.begin()->first;
          const auto due = model.count(now);
          ASSERT_EQ(heap.run_due(now), due) << "seed " << kSeed << " step " << step;
          model.erase(now);
        }
    }
    ASSERT_EQ(heap.size(), model.size());
    // A postponed timer is re-examined at its old time.
    const std::int64_t next = model.empty() ? TimerHeap::kNever : model.begin()->first;
    ASSERT_LE(heap.next_ns(), next) << "seed " << kSeed << " step " << step;
    ASSERT_EQ(heap.next_ns() == TimerHeap::kNever, model.empty());
    if (step % 8 == 0 && !model.empty()) {
      ASSERT_EQ(heap.run_due(next - 1), 0u) << "seed " << kSeed << " step " << step;
      ASSERT_EQ(heap.next_ns(), next) << "seed " << kSeed << " step " << step;
    }
  }
}

TEST(TimerHeap, AFireMayArmItsTimerAgain) {
  TimerHeap heap;
  struct Periodic : Timer {
    TimerHeap* heap_of_test = nullptr;
    int fires = 0;
  } timer;
  timer.heap_of_test = &heap;
  timer.function = [](Timer& t) {
    auto& self = static_cast<Periodic&>(t);
    if (++self.fires < 5) self.heap_of_test->add(self, t.when_ns + 10);
  };
  heap.add(timer, 10);
  EXPECT_EQ(heap.run_due(1000), 5u);
  EXPECT_EQ(timer.fires, 5);
  EXPECT_EQ(heap.size(), 0u);
}

TEST(TimerHeap, WhatWasDisarmedNeverFiresAndMayOutliveTheHeap) {
  Alarm early, late;
  {
    TimerHeap heap;
    heap.add(early, 10);
    heap.add(late, 20);
    heap.disarm_all();
    EXPECT_EQ(heap.next_ns(), TimerHeap::kNever);
    EXPECT_EQ(heap.run_due(1000), 0u);
    EXPECT_FALSE(heap.remove(early));
    heap.add(early, 30);
    heap.disarm_all();
  }
  TimerHeap next;
  EXPECT_EQ(late.heap.load(), nullptr);
  next.add(late, 5);
  EXPECT_EQ(next.run_due(1000), 1u);
  EXPECT_EQ(early.fired, 0);
  EXPECT_EQ(late.fired, 1);
}

// If remove() returned true, the timer will not fire. Each armed timer is either removed or fires, once.
TEST(TimerHeap, EachArmedTimerFiresOrIsRemovedExactlyOnce) {
  const int rounds = testing::scaled(20'000);
  TimerHeap heap;
  std::atomic<bool> finished{false};
  std::thread runner([&] {
    while (!finished.load()) heap.run_due(1000);
  });
  Alarm alarm;
  for (int i = 0; i < rounds; ++i) {
    alarm.fired = 0;
    heap.add(alarm, 1000);
    const bool removed = heap.remove(alarm);
    if (!removed) {
      while (alarm.fired.load() == 0) std::this_thread::yield();
    }
    ASSERT_EQ(alarm.fired.load(), removed ? 0 : 1);
  }
  finished = true;
  runner.join();
}

TEST(TimerHeap, HoldsAMillionTimers) {
  const int count = testing::scaled(1'000'000);
  TimerHeap heap;
  std::vector<Alarm> timers(static_cast<std::size_t>(count));
  testing::Random random(11);
  for (Alarm& alarm : timers) heap.add(alarm, random.below(1U << 31));
  EXPECT_EQ(heap.size(), timers.size());
  for (std::size_t i = 0; i < timers.size(); i += 2) ASSERT_TRUE(heap.remove(timers[i]));
  EXPECT_EQ(heap.run_due(TimerHeap::kNever - 1), timers.size() / 2);
  for (std::size_t i = 0; i < timers.size(); ++i) ASSERT_EQ(timers[i].fired.load(), i % 2 == 0 ? 0 : 1);
}

}  // namespace
}  // namespace tuza::rt
