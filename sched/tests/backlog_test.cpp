// A backlog of goroutines that stall, and which goroutines overtake it.
#include <tuza/sched/go.h>
#include <tuza/sched/rt/g.h>
#include <tuza/sched/rt/park.h>
#include <tuza/sched/rt/queue/backlog.h>
#include <tuza/sched/rt/queue/g_list_inline.h>
#include <tuza/sched/rt/queue/ready.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/tests/hogs.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

namespace tuza {
namespace {

using rt::Backlog;
using rt::Level;
using testing::compute;
using testing::run_with;

constexpr std::uint32_t kThreshold = Backlog::kThreshold;

using Do = Backlog::Do;

TEST(Backlog, BeginsWithAStallOfManyAndLastsForAWhile) {
  Backlog backlog;
  backlog.note_stall(false, kThreshold - 1, 1000, 0);
  backlog.note_stall(false, 1000, kThreshold - 1, 0);
  EXPECT_EQ(backlog.scan(0, 0), Do::kNothing);
  EXPECT_FALSE(backlog.lasts());
  EXPECT_EQ(backlog.level_of_woken(), Level::kWoken);
  backlog.note_stall(false, kThreshold, kThreshold, 0);
  EXPECT_EQ(backlog.scan(0, 0), Do::kFavourProven);
  EXPECT_TRUE(backlog.lasts());
  EXPECT_EQ(backlog.level_of_woken(), Level::kLatecomer);
  EXPECT_EQ(backlog.number(), 1U);
  EXPECT_EQ(backlog.scan(1, Backlog::kLastsNs - 1), Do::kNothing);
  EXPECT_EQ(backlog.scan(1, Backlog::kLastsNs), Do::kEnd);
  EXPECT_FALSE(backlog.lasts());
  EXPECT_EQ(backlog.scan(0, Backlog::kLastsNs), Do::kNothing);
  EXPECT_EQ(backlog.scan(1, Backlog::kLastsNs), Do::kEnd);  // set by a waker that did not see the end
  backlog.note_stall(false, kThreshold, kThreshold, 2 * Backlog::kLastsNs);
  EXPECT_EQ(backlog.scan(0, 2 * Backlog::kLastsNs), Do::kFavourProven);
  EXPECT_EQ(backlog.number(), 2U);
}

TEST(Backlog, LatecomersThatStallAsWellJoinTheOthers) {
  Backlog backlog;
  backlog.note_stall(false, kThreshold, kThreshold, 0);
  EXPECT_EQ(backlog.scan(kThreshold, 0), Do::kFavourProven);
  for (std::uint32_t i = 0; i < Backlog::kStalled - 1; ++i)
    backlog.note_stall(true, kThreshold, kThreshold, 0);
  EXPECT_EQ(backlog.scan(kThreshold, 0), Do::kNothing);
  backlog.note_stall(true, kThreshold, kThreshold, 0);
  EXPECT_EQ(backlog.scan(kThreshold - 1, 0), Do::kNothing);  // so few may remain
  EXPECT_EQ(backlog.scan(kThreshold, 0), Do::kJoin);
  EXPECT_EQ(backlog.scan(kThreshold, 0), Do::kNothing);  // goroutines that came since are judged anew
  for (std::uint32_t i = 0; i < Backlog::kStalled; ++i) backlog.note_stall(false, kThreshold, kThreshold, 0);
  EXPECT_EQ(backlog.scan(kThreshold, 0), Do::kNothing);
}

// Goroutines that are woken all at once.
class Crowd {
 public:
  template <class Function>
  Crowd(WaitGroup& group, int count, Function body) {
    for (int i = 0; i < count; ++i) {
      group.go([this, body] {
        rt::park(
            [](rt::G* g, void* self) {
              auto& crowd = *static_cast<Crowd*>(self);
              const std::scoped_lock lock(crowd.mutex_);
              crowd.waiting_.push_back(g);
              return true;
            },
            this, WaitReason::kTest);
        body();
      });
    }
    testing::yield_until([this, count] {
      const std::scoped_lock lock(mutex_);
      return waiting_.size() == static_cast<std::size_t>(count);
    });
  }
  void wake() {
    rt::GList all;
    for (rt::G* g : waiting_) {
      g->win();
      all.push_back(g);
    }
    rt::ready(std::move(all));
  }

 private:
  std::mutex mutex_;
  std::vector<rt::G*> waiting_;
};

auto hog(std::atomic<int>& begun, const std::atomic<bool>& stop) {
  return [&begun, &stop] {
    ++begun;
    while (!stop) compute(1);
  };
}

constexpr int kManyHogs = 10 * kThreshold;
// By kFrom the backlog has been detected; until kTo it is still long.
constexpr int kFrom = 3 * kThreshold, kTo = 8 * kThreshold;
// A goroutine that overtakes the backlog runs about as often as one of the backlog stalls; behind the backlog, once or
// never.
constexpr int kOvertakes = kManyHogs / 16;

class BacklogTest : public ::testing::Test {};

TEST_F(BacklogTest, LaterWakeUpsAndTheirChildrenOvertakeTheBacklog) {
  run_with(1, [] {
    std::atomic<int> begun = 0, ticks_between = 0, started_between = 0;
    std::atomic<bool> stop = false;
    WaitGroup group;
    Crowd crowd(group, kManyHogs, hog(begun, stop));
    const auto between = [&begun] { return begun >= kFrom && begun < kTo ? 1 : 0; };
    std::atomic<int> ticks = 0;
    group.go([&] {
      for (; !stop; ++ticks) {
        sleep_for(std::chrono::milliseconds(1));
        ticks_between += between();
        if (between() != 0) group.go([&] { started_between += between(); });
      }
    });
    testing::wait_for([&] { return ticks > 2 * static_cast<int>(Backlog::kProvenWaits); });
    crowd.wake();
    while (begun < kManyHogs) sleep_for(std::chrono::milliseconds(1));  // itself on time
    stop = true;
    group.wait();
    EXPECT_GE(ticks_between, kOvertakes);
    EXPECT_GE(started_between, kOvertakes);
  });
}

// In the next two tests the goroutine that starts the second wave, or the latecomers, must run before the first wave is over:
// with sanitizers it is often too late for that on a busy machine.
#if !defined(TUZA_ASAN) && !defined(TUZA_TSAN)

// A constant supply of latecomers: woken by themselves, and by each other through runnext.
void wake_each_other(WaitGroup& group, const std::atomic<bool>& stop) {
  for (int i = 0; i < 3; ++i) {
    group.go([&stop] {
      while (!stop) {
        rt::park(
            [](rt::G* g, void*) {
              g->win();
              rt::GList one;
              one.push_back(g);
              rt::ready(std::move(one));
              return true;
            },
            nullptr, WaitReason::kTest);
      }
    });
  }
  for (int i = 0; i < 4; ++i) {
    auto there = std::make_shared<Chan<int>>(0), back = std::make_shared<Chan<int>>(0);
    group.go([&stop, there, back] {
      while (!stop) {
        there->send(1);
        back->recv();
      }
      there->close();
    });
    group.go([there, back] {
      while (there->recv()) back->send(1);
    });
  }
}

TEST_F(BacklogTest, TheBacklogAndYieldingGoroutinesRunThoughLatecomersNeverEnd) {
  run_with(1, [] {
    std::atomic<int> begun = 0, yields = 0, yields_between = 0;
    std::atomic<bool> stop = false;
    WaitGroup group;
    Crowd crowd(group, kManyHogs, hog(begun, stop));
    group.go([&] {
      for (; !stop; ++yields) {
        yields_between += begun >= kFrom && begun < kTo ? 1 : 0;
        yield();
      }
    });
    crowd.wake();
    testing::wait_for([&] { return begun >= kFrom; });
    wake_each_other(group, stop);
    testing::wait_for([&] { return begun == kManyHogs; });
    EXPECT_GT(yields_between, 0);
    // The backlog ends although there are latecomers at every moment.
    testing::wait_for([] { return !rt::active()->backlog.lasts(); });
    const int before = yields;
    testing::wait_for([&] { return yields > before; });
    stop = true;
    group.wait();
  });
}

TEST_F(BacklogTest, ProvenShortGoroutinesOvertakeASecondWave) {
  run_with(1, [] {
    std::atomic<int> begun = 0, ticks = 0, ticks_between = 0;
    std::atomic<bool> stop = false;
    WaitGroup group;
    Crowd first(group, kManyHogs / 2, hog(begun, stop)), second(group, kManyHogs, hog(begun, stop));
    group.go([&] {
      for (; !stop; ++ticks) {
        sleep_for(std::chrono::milliseconds(1));
        if (begun >= 2 * kManyHogs / 3 && begun < 4 * kManyHogs / 3) ++ticks_between;
      }
    });
    testing::wait_for([&] { return ticks > 2 * static_cast<int>(Backlog::kProvenWaits); });
    first.wake();
    testing::wait_for([&] { return begun >= kManyHogs / 3; });
    second.wake();
    testing::wait_for([&] { return begun == kManyHogs + kManyHogs / 2; });
    stop = true;
    group.wait();
    EXPECT_GE(ticks_between, kOvertakes);
  });
}

#endif

TEST(GlobalQueues, LatecomersAreTakenFirstAndOneByOne) {
  rt::GlobalQueues queues;
  std::vector<rt::G> gs(40);
  for (std::size_t i = 0; i < gs.size(); ++i)
    queues[i % 2 == 0 ? Level::kLatecomer : Level::kWoken].push(&gs[i]);
  std::vector<rt::G*> out(32);
  for (std::size_t i = 0; i < gs.size(); i += 2) {
    const auto [n, level] = queues.pop_batch(1, out, rt::GlobalQueues::First::kWoken);
    ASSERT_EQ(n, 1U);
    EXPECT_EQ(level, Level::kLatecomer);
    EXPECT_EQ(out[0], &gs[i]);
  }
  EXPECT_EQ(queues.pop_batch(1, out, rt::GlobalQueues::First::kWoken).level, Level::kWoken);
}

}  // namespace
}  // namespace tuza
