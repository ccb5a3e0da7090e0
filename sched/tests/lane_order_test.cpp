// The lane: which threads are suspended, and in which order they are resumed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <tuza/sched/go.h>
#include <tuza/sched/rt/base/thread_state.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/slice/lane_room.h>
#include <tuza/sched/tests/hogs.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>

namespace tuza {
namespace {

using testing::compute;
using testing::Hogs;
using testing::kHogs;
using testing::own_cpu_ns;
using testing::run_with;
using testing::scaled;
using testing::suspended;
using testing::wait_for;

TEST(LaneRoom, OneForEachPAndSomeMoreUnlessOthersWait) {
  rt::LaneRoom room;
  room.set(2, 6, false);
  EXPECT_EQ(room.left(1, 0, 0), 7U);
  EXPECT_EQ(room.left(8, 0, 0), 0U);
  EXPECT_EQ(room.left(9, 0, 0), 0U);
  room.set(2, 6, true);
  EXPECT_EQ(room.left(1, 0, 0), 1U);
}

TEST(LaneRoom, OneForEachPWhereNobodyComputes) {
  rt::LaneRoom room;
  room.set(2, 6, false);
  EXPECT_EQ(room.left(0, 0, 0), 2U);
}

// A herd: more than twice as many as may compute where nobody waits for a P.
TEST(LaneRoom, OneForEachPForAWhileAfterManyWereWokenTogether) {
  rt::LaneRoom room;
  room.set(2, 6, true);
  room.note_woken(room.herd_size(), 0);
  room.set(2, 6, false);
  EXPECT_EQ(room.left(1, 0, 0), 7U);
  room.note_woken(room.herd_size() + 1, 0);
  EXPECT_EQ(room.left(1, 0, 0), 1U);
  EXPECT_EQ(room.left(2, 0, 0), 0U);
  constexpr std::int64_t kLater = rt::LaneRoom::kStepNs;
  EXPECT_EQ(room.left(2, 0, kLater), 1U);  // one by one: each may use little of a core
  EXPECT_EQ(room.left(3, 0, kLater), 0U);
  EXPECT_EQ(room.left(8, 0, 2 * kLater), 0U);
  EXPECT_TRUE(room.herd_seen(kLater));
  EXPECT_EQ(room.herd_size(), rt::LaneRoom::kHerdFactor * (2 + 6));
  EXPECT_EQ(room.left(2, 0, rt::LaneRoom::kHerdNs), 6U);
  EXPECT_FALSE(room.herd_seen(rt::LaneRoom::kHerdNs));
}

TEST(LaneRoom, NoneMoreWhileAllThatMayComputeWaitForACore) {
  rt::LaneRoom room;
  room.set(2, 6, false);
  EXPECT_EQ(room.left(0, 0, 0), 2U);
  EXPECT_EQ(room.left(2, 2, 0), 0U);
  EXPECT_EQ(room.left(2, 1, 0), 6U);  // one of them has had a core
  EXPECT_EQ(room.left(2, 2, 0), 0U);
  constexpr std::int64_t kLater = rt::LaneRoom::kStepNs;
  EXPECT_EQ(room.left(2, 2, kLater), 1U);  // one by one: they may be tied to a core that others use
  EXPECT_EQ(room.left(3, 3, kLater), 0U);
}

TEST(ThreadWatch, CallsOnFilesAreNotEndedByASignal) {
  const auto in = [](long call) {
    return rt::is_call_on_file(std::to_string(call) + " 0x3 0x7ffd0 0x10000 0x0");
  };
  for (const long call : {SYS_read, SYS_pread64, SYS_pwrite64, SYS_fsync, SYS_fdatasync})
    EXPECT_TRUE(in(call)) << call;
  for (const long call : {SYS_nanosleep, SYS_write, SYS_ppoll, SYS_futex, SYS_epoll_pwait})
    EXPECT_FALSE(in(call)) << call;
  EXPECT_TRUE(rt::is_call_on_file("-1 0x7ffd0 0x55550"));  // a page fault
  for (const char* line : {"", "running", "0", " 0 ", "x"}) EXPECT_FALSE(rt::is_call_on_file(line)) << line;
}

// The thread state is the one of a disk wait, but the call is not.
TEST(ThreadWatch, WaitingForAChildToExecIsNotDiskWait) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  std::atomic<std::int32_t> parent{0};
  std::atomic<pid_t> child{0};
  std::thread thread([&] {
    parent = static_cast<std::int32_t>(::syscall(SYS_gettid));
    const long id = ::syscall(SYS_clone, CLONE_VFORK | SIGCHLD, 0, 0, 0, 0);
    if (id == 0) {
      char byte = 0;
      ::syscall(SYS_read, pipe[0], &byte, 1);
      ::syscall(SYS_exit_group, 0);
    }
    child = static_cast<pid_t>(id);
  });
  for (long call = 0; call != SYS_clone; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    std::ifstream("/proc/self/task/" + std::to_string(parent) + "/syscall") >> call;
  }
  EXPECT_FALSE(rt::thread_waits_for_disk(parent));
  EXPECT_EQ(::write(pipe[1], "x", 1), 1);
  thread.join();
  EXPECT_GT(child, 0);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  for (const int fd : pipe) ::close(fd);
}

class LaneOrderTest : public testing::WithProcs {};
TUZA_WITH_PROCS(LaneOrderTest);

// The victims lose their Ps in a call that is not marked as blocking, and need only microseconds more. If
// they were suspended like computing goroutines, they would wait for as many turns as there are hogs.
TEST_P(LaneOrderTest, OneThatHasHardlyComputedIsNotSuspended) {
  run_with(GetParam(), [] {
    constexpr int kVictims = 4;
    struct Victim {
      std::atomic<std::uint64_t> id = 0;
      std::atomic<std::uint32_t> rounds = 0;  // odd: in the call, or just after it
    };
    std::array<Victim, kVictims> all;
    std::atomic<bool> stop = false;
    std::atomic<int> returns = 0, stopped = 0;
    WaitGroup victims;
    Hogs hogs(kHogs);
    wait_for([&hogs] { return hogs.surplus_is_suspended(); });
    for (Victim& mine : all) {
      victims.go([&] {
        const struct timespec time{0, 2'000'000};
        mine.id = goroutine_id();
        while (!stop) {
          ++mine.rounds;
          ::nanosleep(&time, nullptr);
          compute(1, 500);
          ++mine.rounds;
          ++returns;
          yield();
        }
      });
    }
    wait_for([&] {
      for (const Victim& one : all) {
        const std::uint32_t round = one.rounds;
        // It must still be in the same round: others are suspended on the same M later.
        if (round % 2 != 0 && suspended(one.id) && one.rounds == round) ++stopped;
      }
      return stopped > 0 || returns >= scaled(1000);
    });
    EXPECT_EQ(stopped, 0);
    stop = true;
    hogs.end();
    victims.wait();
  });
}

// When it wakes, one goroutine too many computes; when it waits, none computes.
TEST_P(LaneOrderTest, EachGetsItsQuantumBesideOneThatWaitsNowAndThen) {
  run_with(GetParam(), [] {
    std::atomic<bool> stop = false;
    WaitGroup waiting;
    Hogs hogs(kHogs);
    waiting.go([&stop] {
      const struct timespec time{0, 5'000'000};
      while (!stop) {
        const std::int64_t end = own_cpu_ns() + 5'000'000;
        while (own_cpu_ns() < end) compute(1);
        ::nanosleep(&time, nullptr);
      }
    });
    hogs.wait_for_turns(3);
    stop = true;
    hogs.end();
    waiting.wait();
  });
}

// One goroutine is suspended with a lock that all others are about to request. If it were resumed in its
// turn, after them, all would be waiting by then, and the kernel would wake one after another, with none of
// them suspended any more. A few are resumed before it, however many wait: those that there was room for, and
// those that were suspended in the same scans. Returns how many wait when it runs again.
int waiting_when_the_holder_runs_again(int waiters) {
  std::mutex mutex;
  std::atomic<bool> lock_it = false;
  std::atomic<int> waiting = 0;
  int waited = waiters;
  std::atomic<std::uint64_t> holder = 0;
  std::atomic<std::int64_t> used_ns = 0;
  WaitGroup all;
  for (int i = 0; i < waiters; ++i) {
    all.go([&] {
      while (!lock_it) compute(1);
      ++waiting;
      const std::scoped_lock lock(mutex);
    });
  }
  wait_for([waiters] { return sched_stats().lane_suspended >= static_cast<std::uint32_t>(waiters) / 2; });
  all.go([&] {
    const std::scoped_lock lock(mutex);
    holder = goroutine_id();
    const std::int64_t begun = own_cpu_ns();
    while (!lock_it) {
      compute(1);
      used_ns = own_cpu_ns() - begun;
    }
    waited = waiting;
  });
  // Young goroutines are resumed first in any case. The holder must be older: a slice with its P, and more
  // CPU time than young ones have used without one.
  const std::int64_t old_ns = rt::active()->slice.slice_ns + 2 * rt::Lane::kYoungNs;
  wait_for([&] { return holder != 0 && suspended(holder) && used_ns >= old_ns; });
  lock_it = true;
  all.wait();
  return waited;
}

// On a busy machine the kernel may leave the holder without a core for as long as the others run. This does not happen each
// time.
TEST_P(LaneOrderTest, WhereAllWaitTheLastSuspendedIsResumedFirst) {
  run_with(GetParam(), [] {
    constexpr int kWaiters = 40, kAttempts = 5;
    int waited = kWaiters;
    for (int i = 0; i < kAttempts && waited >= kWaiters / 2; ++i)
      waited = waiting_when_the_holder_runs_again(kWaiters);
    EXPECT_LT(waited, kWaiters / 2);
  });
}

}  // namespace
}  // namespace tuza
