// What the system refuses, and what the runtime gives back: threads, membarrier(2).
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/go.h>
#include <tuza/sched/log.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/base/thread_limit.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/tests/children.h>
#include <tuza/sched/tests/hogs.h>
#include <unistd.h>

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
    sleep_for(100ms);  // a request for an M may be under way
    const int refused = g_refusals;
    while (!room_is_left()) sleep_for(1ms);
    if (g_refusals != refused) std::_Exit(3);  // the minute is over, and Ms were made ahead again
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
              "tuza: fatal: thread exhaustion: goroutines block all of 20 threads \\(set_max_threads\\)\n"
              "(.*\n)*goroutine [0-9]+ \\[.*\n(.*\n)*and [0-9]+ more like these");
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
