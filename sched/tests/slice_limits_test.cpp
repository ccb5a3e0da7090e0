// What the system refuses, and what the runtime gives back: threads, membarrier(2), stacks.
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/go.h>
#include <tuza/sched/log.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/base/thread_limit.h>
#include <tuza/sched/rt/memory/idle_stacks.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/sync/semaphore.h>
#include <tuza/sched/tests/children.h>
#include <tuza/sched/tests/hogs.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using testing::compute;
using testing::Hogs;
using testing::kHogs;
using testing::run_with;
using testing::scaled;
using testing::wait_for;

class LimitsDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

std::size_t threads() {
  const auto tasks = std::filesystem::directory_iterator("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

// -- A system that refuses threads.

std::atomic<int> g_refusals{0};
void count_refusals(LogLevel, std::string_view line) {
  g_refusals += line.starts_with("tuza: cannot create another thread") ? 1 : 0;
}

// Leaves the process room for `more` threads. Root has no limit, so the process switches to a user id that no
// other process has. Returns false without root: other processes of this user come and go, so a limit for the
// user would mean nothing.
bool limit_threads(rlim_t more) {
  if (::geteuid() != 0) return false;
  const auto nobody = static_cast<uid_t>(1'000'000'000 + ::getpid());
  if (::setgroups(0, nullptr) != 0 || ::setresuid(nobody, nobody, nobody) != 0) return false;
  const struct rlimit limit{threads() + more, threads() + more};
  return ::setrlimit(RLIMIT_NPROC, &limit) == 0;
}

[[noreturn]] void block_more_than_there_are_threads() {
  ::alarm(testing::kChildSecondsMax);
  if (!limit_threads(12)) std::_Exit(7);
  set_log_sink(&count_refusals);
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<int> done = 0;
  run(RunOptions{.max_procs = 2}, [&done] {
    for (int round = 0; round < 2; ++round) {
      WaitGroup group;
      for (int i = 0; i < 60; ++i) {
        group.go([&done] {
          ::usleep(10'000);
          yield();
          ++done;
        });
      }
      group.wait();
    }
    // Goroutines that block must finish before others run; goroutines that compute need not.
    Hogs hogs(4);
    WaitGroup others;
    for (int i = 0; i < 50; ++i) others.go([&done] { ++done; });
    others.wait();
  });
  const auto seconds = (std::chrono::steady_clock::now() - begin) / 1s;
  std::_Exit(done == 170 && g_refusals >= 1 && g_refusals <= seconds + 1 ? 7 : 1);
}

TEST_F(LimitsDeathTest, RefusedThreadsAreReportedOnceASecondAndAllKeepRunning) {
  EXPECT_EXIT(block_more_than_there_are_threads(), ::testing::ExitedWithCode(7), "");
}

// Room for the runtime's two helpers, one thread for goroutines and three of the program, which makes them late in its
// set-up: spare threads must not have taken their places.
[[noreturn]] void set_up_late() {
  ::alarm(testing::kChildSecondsMax);
  if (!limit_threads(rt::kTsan ? 7 : 6)) std::_Exit(7);  // ThreadSanitizer makes a thread of its own
  run([] {
    std::this_thread::sleep_for(200ms);  // without parking
    try {
      for (int i = 0; i < 3; ++i) std::thread([] { ::pause(); }).detach();
    } catch (const std::system_error&) {
      std::_Exit(1);
    }
    std::_Exit(7);
  });
  std::_Exit(2);
}

TEST_F(LimitsDeathTest, TheProgramsSetUpGetsItsThreadsBeforeSpareOnesAreMade) {
  EXPECT_EXIT(set_up_late(), ::testing::ExitedWithCode(7), "");
}

// Sysmon asks for an M while the one that will do the work is still starting.
TEST(Limits, AnMThatIsAskedForTwiceIsMadeOnce) {
  run_with(2, [] {
    for (int i = 0; i < 20; ++i) {
      rt::active()->maker.request(rt::MMaker::Request::kRunOne);
      std::this_thread::sleep_for(2ms);  // without parking: the program still sets itself up
    }
    EXPECT_EQ(testing::ms_numbered(), 1U);
    // One that is to look around is made in any case: what it may find is no work.
    rt::active()->maker.request(rt::MMaker::Request::kLook);
    while (testing::ms_numbered() < 2) std::this_thread::sleep_for(1ms);
  });
}

// After the set-up spare threads take what there is, and give some of it back; those that work needs come later, and go
// again.
[[noreturn]] void make_threads_later() {
  ::alarm(testing::kChildSecondsMax);
  constexpr std::uint32_t kLimit = 9;  // two helpers, and fewer than are kept idle
  static_assert(kLimit < 2 + rt::MMaker::kSpareMin);
  if (!limit_threads(kLimit)) std::_Exit(7);
  set_log_sink(&count_refusals);
  run([] {
    const auto room_is_left = [] { return threads() <= 1 + kLimit - rt::MMaker::kRoom; };
    while (g_refusals == 0 || !room_is_left()) sleep_for(1ms);
    WaitGroup blocked;
    for (std::uint32_t i = 0; i < kLimit; ++i) blocked.go([] { ::usleep(200'000); });
    while (room_is_left()) sleep_for(1ms);
    blocked.wait();
    while (!room_is_left()) sleep_for(1ms);
    try {
      // All but one: an M may be made for work at this moment.
      for (std::uint32_t i = 1; i < rt::MMaker::kRoom; ++i) std::thread([] { ::pause(); }).detach();
    } catch (const std::system_error&) {
      std::_Exit(1);
    }
    std::_Exit(7);
  });
  std::_Exit(2);
}

TEST_F(LimitsDeathTest, SpareThreadsLeaveRoomForThoseOfTheProgram) {
  EXPECT_EXIT(make_threads_later(), ::testing::ExitedWithCode(7), "");
}

TEST_F(LimitsDeathTest, ARefusedThreadNamesTheLimit) {
  EXPECT_EXIT(
      {
        if (!limit_threads(1)) std::_Exit(1);
        run([] {});
      },
      ::testing::ExitedWithCode(1),
      // A sanitizer's thread takes the place of the first one.
      "tuza: the system refuses the first threads of the runtime "
      "\\((sysmon|the maker of others)\\), with stacks of .*: "
      "ulimit -u \\([0-9]+ threads of this user\\) is reached\n$");
}

TEST(Limits, AThreadWithoutMemoryForItsStackNamesTheLimit) {
  struct rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const auto said = [](int error) {
    rt::Line text(rt::Line::kNowhere);
    rt::explain_refused_thread(text, error);
    return std::string(text.text());
  };
  struct rlimit limit = before;
  limit.rlim_cur = rlim_t{1} << 50;
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
  EXPECT_EQ(said(ENOMEM), "no memory for its stack: ulimit -v (1099511627776 KiB) is reached");
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  if (before.rlim_cur == RLIM_INFINITY) {
    EXPECT_EQ(said(ENOMEM), "no memory for its stack");
  }
}

// -- The runtime's own limit.

// Blocks `count` goroutines at once in calls that are not marked, each on a thread of its own. Returns how many
// Ms that takes.
std::uint32_t block_unmarked(int count) {
  std::atomic<int> inside = 0;
  std::atomic<std::uint32_t> ms = 0;
  WaitGroup group;
  for (int i = 0; i < count; ++i) {
    group.go([&] {
      ++inside;
      while (inside < count) ::usleep(1000);
      if (ms == 0) ms = testing::ms_numbered();
    });
  }
  group.wait();
  return ms;
}

TEST(MaxThreads, CanBeAskedForAndChanged) {
  run_with(2, [] {
    EXPECT_EQ(set_max_threads(0), 10'000);
    EXPECT_EQ(set_max_threads(-1), 10'000);
    EXPECT_EQ(set_max_threads(100'000), 10'000);
    EXPECT_EQ(set_max_threads(30), 65'536);
    block_unmarked(20);
    EXPECT_EQ(set_max_threads(0), 30);
  });
}

TEST_F(LimitsDeathTest, GoroutinesThatBlockMoreThreadsThanAreAllowedEndTheProcess) {
  EXPECT_EXIT(run(RunOptions{.max_procs = 2},
                  [] {
                    set_max_threads(20);
                    block_unmarked(40);
                  }),
              ::testing::KilledBySignal(SIGABRT),
              "tuza: fatal: thread exhaustion: goroutines block all of 20 threads \\(set_max_threads\\)");
}

// -- Threads that are given back.

TEST(Retirement, AfterABurstThreadsThatNobodyNeedsEnd) {
  run_with(2, [] {
    const std::size_t before = threads();
    const std::uint32_t ms = block_unmarked(200);
    // The idle threads that sysmon keeps, and two for threads that were at work at every scan.
    const std::size_t kept = before + static_cast<std::size_t>(max_procs()) + rt::MMaker::kSpareMin + 8 + 2;
    while (threads() > kept) sleep_for(50ms);
    EXPECT_LE(block_unmarked(50), ms) << "their Ms are not used again";
  });
}

// -- A system without membarrier(2).

bool forbid_membarrier() {
  const auto number = static_cast<std::uint32_t>(offsetof(struct seccomp_data, nr));
  std::array<sock_filter, 4> filter{
      sock_filter BPF_STMT(BPF_LD | BPF_W | BPF_ABS, number),
      sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1 /* not permitted */),
      sock_filter BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(filter.size()), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

void take_ps_without_a_heavy_fence(int procs) {
  run_with(procs, [] {
    EXPECT_TRUE(rt::active()->fence_on_enter);
    Hogs hogs(kHogs, [](int) { compute(1); });
    wait_for([&hogs] { return hogs.surplus_is_suspended(); });
    hogs.wait_for_turns(1);
    WaitGroup others;
    std::atomic<int> ran = 0;
    for (int i = 0; i < scaled(2000); ++i) {
      others.go([&ran] {
        blocking([&ran] { ++ran; });
        yield();
      });
    }
    others.wait();
    EXPECT_EQ(ran, scaled(2000));
    EXPECT_GT(sched_stats().lane_arrivals, 0u);
  });
}

class NoFenceTest : public testing::WithProcs {
 protected:
  void TearDown() override { unsetenv("TUZA_DEBUG"); }
};
TUZA_WITH_PROCS(NoFenceTest);

TEST_P(NoFenceTest, SlicesWorkWithMembarrierDisabled) {
  setenv("TUZA_DEBUG", "membarrieroff=1", 1);
  take_ps_without_a_heavy_fence(GetParam());
}

[[noreturn]] void run_in_a_sandbox() {
  if (!forbid_membarrier()) std::_Exit(2);
  for (const int procs : {1, 2, 4}) take_ps_without_a_heavy_fence(procs);
  std::_Exit(::testing::Test::HasFailure() ? 1 : 7);
}

TEST_F(LimitsDeathTest, SlicesWorkInASandboxThatForbidsMembarrier) {
  if (::prctl(PR_GET_SECCOMP) < 0) GTEST_SKIP() << "no seccomp";
  EXPECT_EXIT(run_in_a_sandbox(), ::testing::ExitedWithCode(7), "");
}

// -- Stacks of goroutines that wait for long.

// Touches `bytes` of stack below the caller's frame.
TUZA_NOIPA void go_deep(std::size_t bytes) {
  char block[1024];
  std::memset(block, 7, sizeof block);
  if (bytes > sizeof block) go_deep(bytes - sizeof block);
  compute(static_cast<std::uint64_t>(block[5]), 1);
}

std::size_t resident_pages(const rt::Stack& stack) {
  const std::uintptr_t low = (stack.low + 4095) & ~std::uintptr_t{4095};
  std::vector<unsigned char> pages((stack.top - low + 4095) / 4096);
  EXPECT_EQ(::mincore(reinterpret_cast<void*>(low), stack.top - low, pages.data()), 0);
  return static_cast<std::size_t>(
      std::count_if(pages.begin(), pages.end(), [](auto page) { return page & 1; }));
}

TEST(IdleStacks, WhatLiesBelowALongWaitIsGivenBackOnceAndNothingElse) {
  run_with(2, [] {
    constexpr std::size_t kDeep = 40 << 10;
    std::atomic<rt::G*> waiter = nullptr;
    Semaphore wakes(0);
    WaitGroup group;
    group.go([&] {
      std::array<std::uint64_t, 64> kept{};
      for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = compute(i, 10);
      for (int round = 0; round < 2; ++round) {
        go_deep(kDeep);
        const rt::NothingBelow trim_while_parked;
        waiter = rt::current_m()->current.get();
        wakes.acquire();
        for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(kept[i], compute(i, 10));
      }
    });
    rt::IdleStacks trimmer;
    for (int round = 0; round < 2; ++round) {
      wait_for([&waiter] { return waiter != nullptr; });
      const rt::G& g = *waiter.exchange(nullptr);
      wait_for([&g] { return g.status == rt::GStatus::kWaiting; });
      const std::size_t before = resident_pages(g.stack);
      EXPECT_GE(before, kDeep / 4096);
      trimmer.trim_some(*rt::active(), rt::now_ns());
      EXPECT_EQ(resident_pages(g.stack), before) << "it has not waited for long";
      trimmer.trim_some(*rt::active(), rt::now_ns(), 0);
      EXPECT_LE(resident_pages(g.stack), before - kDeep / 4096 + 2);
      EXPECT_GE(resident_pages(g.stack), 1u);
      EXPECT_EQ(g.status, rt::GStatus::kWaiting);
      sleep_for(5ms);  // waits are told apart by their start times
      wakes.release();
    }
    group.wait();
  });
}

// The runtime does not know what the program's frames keep below the stack pointer.
TEST(IdleStacks, NothingIsGivenBackOfAGoroutineThatDoesNotSayThatNothingLiesBelow) {
  run_with(2, [] {
    constexpr std::size_t kDeep = 40 << 10;
    Semaphore wakes(0);
    std::atomic<rt::G*> waiter = nullptr;
    WaitGroup group;
    group.go([&] {
      go_deep(kDeep);
      {
        const rt::NothingBelow until_here;
      }
      waiter = rt::current_m()->current.get();
      wakes.acquire();
    });
    wait_for([&waiter] { return waiter != nullptr && waiter.load()->status == rt::GStatus::kWaiting; });
    const std::size_t before = resident_pages(waiter.load()->stack);
    EXPECT_GE(before, kDeep / 4096);
    rt::IdleStacks().trim_some(*rt::active(), rt::now_ns(), 0);
    EXPECT_EQ(resident_pages(waiter.load()->stack), before);
    wakes.release();
    group.wait();
  });
}

#if !defined(TUZA_ASAN) && !defined(TUZA_TSAN)  // which report the switch of stacks as a wild jump

Semaphore* g_wakes_inner = nullptr;
ucontext_t g_outer, g_inner;
void park_on_the_inner_stack() { g_wakes_inner->acquire(); }

// Parks on a stack that is an array in this frame. Returns how many of the surrounding words have changed.
[[gnu::noinline]] int park_in_an_array() {
  alignas(16) char stack[96 << 10];
  std::memset(stack, 1, sizeof stack);
  getcontext(&g_inner);
  g_inner.uc_stack.ss_sp = stack;
  g_inner.uc_stack.ss_size = sizeof stack;
  g_inner.uc_link = &g_outer;
  makecontext(&g_inner, &park_on_the_inner_stack, 0);
  volatile int words[4096];  // below the array
  for (int i = 0; i < 4096; ++i) words[i] = i;
  swapcontext(&g_outer, &g_inner);
  int changed = 0;
  for (int i = 0; i < 4096; ++i) changed += words[i] != i ? 1 : 0;
  for (std::size_t i = 0; i < sizeof stack / 2; ++i)
    changed += stack[i] != 1 ? 1 : 0;  // its own frames use the upper half
  return changed;
}

// A coroutine or fiber whose stack lies on the goroutine's stack: the frames that resumed it are below its
// stack pointer. The runtime used to give these frames back after ten seconds.
TEST(IdleStacks, FramesBelowAStackThatLiesOnTheGoroutinesAreKept) {
  run_with(2, [] {
    Semaphore wakes(0);
    g_wakes_inner = &wakes;
    std::atomic<rt::G*> waiter = nullptr;
    std::atomic<int> changed = -1;
    WaitGroup group;
    group.go([&] {
      waiter = rt::current_m()->current.get();
      changed = park_in_an_array();
    });
    wait_for([&waiter] { return waiter != nullptr && waiter.load()->status == rt::GStatus::kWaiting; });
    rt::IdleStacks trimmer;
    while (!trimmer.trim_some(*rt::active(), rt::now_ns() + 2 * rt::IdleStacks::kAfterNs)) {
    }
    wakes.release();
    group.wait();
    EXPECT_EQ(changed, 0);
  });
}

#endif

// Wakers and the deadlock detector find goroutines whose stacks are being trimmed.
TEST(IdleStacks, TheyMayBeWokenMeanwhile) {
  run_with(2, [] {
    std::atomic<bool> stop = false;
    std::thread trimmer([&stop, sched = rt::active()] {
      for (rt::IdleStacks stacks; !stop;) stacks.trim_some(*sched, rt::now_ns(), 0);
    });
    std::vector<std::unique_ptr<Semaphore>> turns;
    for (int i = 0; i < 16; ++i) turns.push_back(std::make_unique<Semaphore>(i % 4 == 0 ? 1 : 0));
    WaitGroup ring;
    std::atomic<int> rounds = 0;
    for (std::size_t i = 0; i < turns.size(); ++i) {
      ring.go([&, i] {
        const rt::NothingBelow trim_while_parked;
        for (int k = 0; k < scaled(2000); ++k) {
          turns[i]->acquire();
          if (k % 64 == 0) go_deep(20 << 10);
          ++rounds;
          turns[(i + 1) % turns.size()]->release();
        }
      });
    }
    ring.wait();
    EXPECT_EQ(rounds, scaled(2000) * 16);
    stop = true;
    trimmer.join();
  });
}

// -- Settings from the environment.

TEST(SliceOptions, NonsenseIsNamedAndIgnored) {
  for (const char* text : {"TUZA_SLICE_MS=0", "TUZA_SLICE_MS=10001", "TUZA_SLICE_MS=ten",
                           "TUZA_EARLY_HANDOFF_US=99", "TUZA_EARLY_HANDOFF_US=-1", "TUZA_PREEMPT_SIGNAL=65",
                           "TUZA_PREEMPT_SIGNAL=9", "TUZA_PREEMPT_SIGNAL=11"}) {
    const std::string name(text, std::strchr(text, '='));
    setenv(name.c_str(), text + name.size() + 1, 1);
    ::testing::internal::CaptureStderr();
    const rt::SliceOptions options = rt::SliceOptions::from_environment();
    const std::string printed = ::testing::internal::GetCapturedStderr();
    unsetenv(name.c_str());
    EXPECT_TRUE(printed.starts_with("tuza: " + name) && printed.ends_with("ignored\n")) << printed;
    EXPECT_EQ(options.slice_ns, 10'000'000);
    EXPECT_EQ(options.early_ns, 1'000'000);
    EXPECT_EQ(options.signal, SIGURG);
  }
}

TEST(SliceOptions, TheLimitsThemselvesAreTaken) {
  setenv("TUZA_SLICE_MS", "10000", 1);
  setenv("TUZA_EARLY_HANDOFF_US", "0", 1);
  setenv("TUZA_PREEMPT_SIGNAL", "64", 1);
  const rt::SliceOptions options = rt::SliceOptions::from_environment();
  for (const char* name : {"TUZA_SLICE_MS", "TUZA_EARLY_HANDOFF_US", "TUZA_PREEMPT_SIGNAL"}) unsetenv(name);
  EXPECT_EQ(options.slice_ns, 10'000'000'000);
  EXPECT_EQ(options.early_ns, 0);
  EXPECT_EQ(options.signal, 64);
}

}  // namespace
}  // namespace tuza
