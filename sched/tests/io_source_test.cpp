// The scheduler's side of I/O, tested with a source that needs no descriptors.
#include <tuza/sched/go.h>
#include <tuza/sched/rt/park.h>
#include <tuza/sched/rt/queue/g_list_inline.h>
#include <tuza/sched/rt/queue/io_source.h>
#include <tuza/sched/rt/queue/poll_role.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/sleep.h>

#include <sys/syscall.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
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
    }
    last_thread = std::this_thread::get_id();
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
      own_thread = std::this_thread::get_id();
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
  std::atomic<std::thread::id> last_thread;  // that polled
  std::atomic<std::thread::id> own_thread;   // the last one that took over

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
    constexpr int kRounds = 20;
    std::atomic<bool> done{false};
    std::thread outside([&] {
      while (!done) {
        while (source.blocked.load() == 0 && !done) std::this_thread::yield();
        source.event();
      }
    });
    // Where this thread gets no core for milliseconds, the source's own thread takes over: these rounds do not
    // count.
    for (int by_ms = 0; by_ms < kRounds;) {
      source.wait();
      const std::thread::id poller = source.last_thread;
      if (poller == source.own_thread.load()) continue;
      ++by_ms;
      if constexpr (!testing::kChaos) {
        EXPECT_EQ(poller, std::this_thread::get_id());
      }
    }
    done = true;
    outside.join();
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
      // By then the last M has looked for a deadlock: one is in the source, the others sleep.
      while (source.blocked.load() == 0 || !testing::awake_ms_are(1)) std::this_thread::yield();
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
    const auto event_when_waited_for = [&source] {
      while (source.waiters() == 0 || source.blocked.load() == 0) std::this_thread::yield();
      source.event();
    };
    std::thread first(event_when_waited_for);
    source.wait();
    first.join();
    std::atomic<bool> served{false};
    WaitGroup group;
    group.go([&] {
      source.wait();
      served = true;
    });
    while (source.waiters() == 0) yield();
    // This goroutine keeps the only P. No thread polls until sysmon gives the role away: when the last poll, just
    // above, is a millisecond old. Sysmon ticks once or twice in that time, and more often until this goroutine, on a busy
    // machine, has seen it.
    const int taken_over_before = source.taken_over;
    const std::uint64_t before = sched_stats().sysmon_ticks;
    while (source.taken_over.load() == taken_over_before) {
    }
    EXPECT_LE(sched_stats().sysmon_ticks - before, 100u);
    while (source.blocked.load() == 0) {
    }
    source.event();
    EXPECT_FALSE(served);
    group.wait();  // found ready in the GRQ
    EXPECT_TRUE(served);
    // When an M is idle again, it takes the role back.
    group.go([&source] { source.wait(); });
    std::thread outside(event_when_waited_for);
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
    while (source.blocked.load() == 0) yield();
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

// The thread that has this name.
std::filesystem::path thread_named(const std::string& name) {
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string found;
    std::getline(std::ifstream(thread.path() / "comm"), found);
    if (found == name) return thread.path();
  }
  return {};
}

// Whether the thread waits for a futex without a timeout, which it has in any case where signals are late (see
// futex_wait()). /proc/PID/syscall: the number, the arguments.
bool sleeps_until_woken(const std::filesystem::path& thread) {
  std::ifstream in(thread / "syscall");
  long call = -1;
  std::string word, operation, expected, timeout;
  in >> call >> word >> operation >> expected >> timeout;
  return call == SYS_futex && (timeout == "0x0" || rt::kTsan);
}

// What is to be given back to the system is looked at each second, and sysmon sleeps in between: it ticked 500 times for each
// event that came to an idle program.
TEST(Sysmon, TicksLittleAfterAnEvent) {
  FakeSource source;
  run_with(2, [&source] {
    attach_io_source(source);
    const std::filesystem::path sysmon = thread_named("tuza-sysmon");
    ASSERT_FALSE(sysmon.empty());
    std::atomic<std::uint64_t> at_event = 0, asleep = 0;
    WaitGroup group;
    group.go([&] {
      source.wait();
      at_event = sched_stats().sysmon_ticks;
      source.wait();
      asleep = sched_stats().sysmon_ticks;
    });
    std::thread outside([&] {
      for (int event = 0; event < 2; ++event) {
        while (source.waiters() == 0 || !sleeps_until_woken(sysmon)) std::this_thread::sleep_for(1ms);
        source.event();
        while (event == 0 && at_event == 0) std::this_thread::sleep_for(1ms);
      }
    });
    group.wait();
    outside.join();
    EXPECT_LT(asleep - at_event, 200u);
  });
}

TEST(Sysmon, SleepsUntilItIsWokenWhileEverythingIsIdle) {
  FakeSource source;
  run_with(2, [&source] {
    attach_io_source(source);
    WaitGroup group;
    group.go([&source] { source.wait(); });
    const std::filesystem::path sysmon = thread_named("tuza-sysmon");
    ASSERT_FALSE(sysmon.empty());
    std::thread outside([&] {
      // It has nothing left to return to the system: this takes seconds on any machine. An event for which nobody waits
      // would be lost.
      while (source.waiters() == 0 || !sleeps_until_woken(sysmon)) std::this_thread::sleep_for(1ms);
      source.event();
    });
    group.wait();
    outside.join();
    // Sysmon ticks again when there is work.
    const std::uint64_t before = sched_stats().sysmon_ticks;
    while (sched_stats().sysmon_ticks == before) {
    }
  });
}

}  // namespace
}  // namespace tuza
