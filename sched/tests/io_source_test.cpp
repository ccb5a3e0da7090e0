// The scheduler's side of I/O, tested with a source that needs no descriptors.
#include <tuza/sched/go.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/park.h>
#include <tuza/sched/rt/queue/g_list_inline.h>
#include <tuza/sched/rt/queue/io_source.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/sleep.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using testing::run_with;

// Goroutines call wait(); any thread wakes them with event().
class FakeSource final : public IoSource {
 public:
  ~FakeSource() override {
    if (thread_.joinable()) thread_.join();
  }

  void wait() {
    rt::park(
        [](rt::G* g, void* self) {
          auto& source = *static_cast<FakeSource*>(self);
          // All under one lock: the poller, and then event(), may run as soon as the wait has begun.
          const std::scoped_lock lock(source.mutex_);
          ++source.waiters_;
          rt::io_wait_begins();
          source.waiting_.push_back(g);
          return true;
        },
        this, WaitReason::kIoRead);
  }
  void event() {
    const std::scoped_lock lock(mutex_);
    rt::G* g = waiting_.pop_front();
    if (g == nullptr) return;
    ready_.push_back(g);
    changed_.notify_all();
  }

  // Wakes a goroutine without an event, as closing a descriptor does.
  void cancel() {
    std::unique_lock lock(mutex_);
    rt::G* g = waiting_.pop_front();
    lock.unlock();
    --waiters_;
    rt::io_wait_ends();
    rt::ready(g);
  }

  void poll(std::int64_t timeout_ns, rt::GList& ready) override {
    std::unique_lock lock(mutex_);
    if (timeout_ns != 0) {
      ++blocked;
      const auto ready_or_woken = [this] { return !ready_.empty() || wake_; };
      if (timeout_ns < 0) {
        changed_.wait(lock, ready_or_woken);
      } else {
        changed_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), ready_or_woken);
      }
      --blocked;
      wake_ = false;
      last_blocked_thread = std::this_thread::get_id();
    }
    while (rt::G* g = ready_.pop_front()) {
      g->win();
      --waiters_;
      ready.push_back(g);
    }
  }
  void wake() override {
    const std::scoped_lock lock(mutex_);
    wake_ = true;
    changed_.notify_all();
  }
  std::int64_t waiters() const { return waiters_; }
  void take_over() override {
    ++taken_over;
    if (thread_.joinable()) thread_.join();
    thread_ = std::thread([this] {
      rt::GList ready;
      poll(-1, ready);
      rt::poll_role_returned(std::move(ready));
    });
  }
  void detach() override {
    detached = true;
    if (thread_.joinable()) thread_.join();
  }

  std::atomic<int> taken_over{0};
  std::atomic<int> blocked{0};
  std::atomic<bool> detached{false};
  std::thread::id last_blocked_thread;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  rt::GList waiting_, ready_;
  bool wake_ = false;
  std::atomic<std::int64_t> waiters_{0};
  std::thread thread_;
};

TEST(IoSource, AnIdleMBlocksInItAndRunsTheGoroutineOnThatThread) {
  FakeSource source;
  run_with(1, [&source] {
    ASSERT_TRUE(attach_io_source(source));
    int on_the_same_thread = 0;
    for (int i = 0; i < 20; ++i) {
      std::thread outside([&source] {
        while (source.blocked.load() == 0) std::this_thread::yield();
        source.event();
      });
      source.wait();
      if (source.last_blocked_thread == std::this_thread::get_id()) ++on_the_same_thread;
      outside.join();
    }
    // Nearly always on the same thread. But starting a thread, above, may keep the only M for so long that
    // the source's own thread takes over.
    EXPECT_GT(on_the_same_thread, rt::chaos::kEnabled ? -1 : 0);
  });
  EXPECT_TRUE(source.detached);
}

TEST(IoSource, OnlyOnePerRuntime) {
  FakeSource first, second;
  run_with(1, [&] {
    EXPECT_TRUE(attach_io_source(first));
    EXPECT_FALSE(attach_io_source(second));
  });
  EXPECT_FALSE(attach_io_source(first)) << "no runtime";
}

TEST(IoSource, GoroutinesThatWaitForItAreNotDeadlocked) {
  FakeSource source;
  run_with(2, [&source] {
    attach_io_source(source);
    std::thread outside([&source] {
      std::this_thread::sleep_for(50ms);
      source.event();
    });
    source.wait();
    outside.join();
  });
}

TEST(IoSource, IsPolledWhileGoroutinesNeverLeaveTheQueuesEmpty) {
  FakeSource source;
  run_with(1, [&source] {
    attach_io_source(source);
    std::atomic<bool> served{false};
    WaitGroup group;
    group.go([&] {
      source.wait();
      served = true;
    });
    group.go([&] {
      while (!served) yield();
    });
    group.go([&] {
      while (!served) yield();
    });
    while (source.waiters() == 0) yield();
    source.event();
    group.wait();
  });
}

TEST(IoSource, ItsOwnThreadTakesOverWhenEveryMIsBusy) {
  // With shorter slices the busy goroutine might lose its P first, and the M that gets the P would poll. (The
  // chaos build takes the P at one leave of the runtime in sixteen: then no thread takes over, and this
  // goroutine waits for ever.)
  setenv("TUZA_SLICE_MS", "10000", 1);
  setenv("TUZA_EARLY_HANDOFF_US", "0", 1);
  setenv("TUZA_CHAOS_HANDOFF", "0", 1);
  FakeSource source;
  run_with(1, [&source] {
    attach_io_source(source);
    std::atomic<bool> served{false};
    WaitGroup group;
    group.go([&] {
      source.wait();
      served = true;
    });
    while (source.waiters() == 0) yield();
    // This goroutine keeps the only P. No thread polls until sysmon gives the role away.
    while (source.taken_over.load() == 0) {
    }
    while (source.blocked.load() == 0) {
    }
    source.event();
    EXPECT_FALSE(served);
    group.wait();  // found ready in the GRQ
    EXPECT_TRUE(served);
    // When an M is idle again, it takes the role back.
    group.go([&source] { source.wait(); });
    std::thread outside([&source] {
      while (source.waiters() == 0 || source.blocked.load() == 0) std::this_thread::yield();
      source.event();
    });
    group.wait();
    outside.join();
  });
  unsetenv("TUZA_SLICE_MS");
  unsetenv("TUZA_EARLY_HANDOFF_US");
  unsetenv("TUZA_CHAOS_HANDOFF");
}

TEST(IoSource, TimersFireWhileAnMBlocksInIt) {
  FakeSource source;
  run_with(2, [&source] {
    attach_io_source(source);
    WaitGroup group;
    group.go([&source] { source.wait(); });
    for (int i = 0; i < 20; ++i) sleep_for(1ms);
    source.event();
    group.wait();
  });
}

TEST(IoSource, TheRuntimeStopsThoughAnMBlocksInIt) {
  FakeSource source;
  run(RunOptions{.max_procs = 2}, [&source] {
    attach_io_source(source);
    go([&source] { source.wait(); });
    while (source.waiters() == 0) yield();
    sleep_for(2ms);
  });
  EXPECT_TRUE(source.detached);
}

TEST(IoSourceDeathTest, ADeadlockIsFoundThoughAnMStillBlocksInIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        FakeSource source;
        run(RunOptions{.max_procs = 2}, [&source] {
          attach_io_source(source);
          WaitGroup never;
          never.add(1);
          go([&] {
            source.wait();
            never.wait();
          });
          go([&] {
            while (source.blocked.load() == 0) {  // keeps its M, so that the other one waits in the source
            }
            source.cancel();
            never.wait();
          });
          never.wait();
        });
      },
      ::testing::ExitedWithCode(2), "deadlock!");
}

TEST(Sysmon, SleepsWhileEverythingIsIdle) {
  FakeSource source;
  run_with(2, [&source] {
    attach_io_source(source);
    WaitGroup group;
    group.go([&source] { source.wait(); });
    std::uint64_t ticks = 0;
    std::thread outside([&] {
      // Waits until the scavenger is done and sysmon has stopped ticking: this takes seconds on any machine.
      std::uint64_t before = 0;
      do {
        before = rt::active()->sysmon.ticks();
        std::this_thread::sleep_for(300ms);
      } while (rt::active()->sysmon.ticks() != before);
      std::this_thread::sleep_for(300ms);
      ticks = rt::active()->sysmon.ticks() - before;
      source.event();
    });
    group.wait();
    outside.join();
    EXPECT_EQ(ticks, 0u);
    // Sysmon ticks again when there is work.
    const std::uint64_t before = rt::active()->sysmon.ticks();
    while (rt::active()->sysmon.ticks() == before) {
    }
  });
}

}  // namespace
}  // namespace tuza
