// What the runtime takes from its environment (CPU limits, variables, stacks), and what it prints.
#include <gtest/gtest.h>
#include <tuza/sched/go.h>
#include <tuza/sched/log.h>
#include <tuza/sched/result.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/rt/idle/cpu_limit.h>
#include <tuza/sched/rt/memory/stack_arena.h>
#include <tuza/sched/rt/report/debug_options.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/testing.h>
#include <tuza/sched/time/sleep.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace tuza {
namespace {

namespace fs = std::filesystem;

// A simulated root file system with one cgroup.
class CpuLimitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(::testing::TempDir()) /
            ("tuza_cpu_limit_" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) + "_" +
             ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& content) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << content;
  }
  std::int64_t quota_milli() {
    rt::CpuLimit limit;
    limit.find(root_.string());
    return limit.quota_milli();
  }
  fs::path root_;
};

constexpr const char* kMountV2 =
    "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

TEST_F(CpuLimitTest, NoCgroupsNoLimit) { EXPECT_EQ(quota_milli(), 0); }

TEST_F(CpuLimitTest, ReadsTheQuotaOfVersion2) {
  write("proc/self/mountinfo", kMountV2);
  write("proc/self/cgroup", "0::/app\n");
  write("sys/fs/cgroup/app/cpu.max", "150000 100000\n");
  EXPECT_EQ(quota_milli(), 1500);
}

TEST_F(CpuLimitTest, MaxMeansNoLimit) {
  write("proc/self/mountinfo", kMountV2);
  write("proc/self/cgroup", "0::/app\n");
  write("sys/fs/cgroup/app/cpu.max", "max 100000\n");
  EXPECT_EQ(quota_milli(), 0);
}

TEST_F(CpuLimitTest, TheTightestLevelCounts) {
  write("proc/self/mountinfo", kMountV2);
  write("proc/self/cgroup", "0::/a/b/c\n");
  write("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  write("sys/fs/cgroup/a/b/cpu.max", "200000 100000\n");
  write("sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
  EXPECT_EQ(quota_milli(), 500);
}

TEST_F(CpuLimitTest, ReadsTheQuotaOfVersion1) {
  write("proc/self/mountinfo",
        "31 24 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "32 24 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  write("proc/self/cgroup", "9:memory:/m\n4:cpu,cpuacct:/job\n0::/\n");
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "300000\n");
  write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota_milli(), 3000);
}

TEST_F(CpuLimitTest, AContainerWithoutItsOwnNamespaceFindsItsDirectory) {
  write("proc/self/mountinfo", "31 24 0:27 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
  write("proc/self/cgroup", "4:cpu:/docker/abc\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "25000\n");
  write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota_milli(), 250);
}

TEST_F(CpuLimitTest, GarbageIsNoLimit) {
  write("proc/self/mountinfo", kMountV2);
  write("proc/self/cgroup", "0::/app\n");
  for (const char* text : {"", "\n", "12", "x y", "-1 100000", "100000 0", "99999999999999999999 1"}) {
    write("sys/fs/cgroup/app/cpu.max", text);
    EXPECT_EQ(quota_milli(), 0) << text;
  }
}

// No descriptor left, or a sandbox: the limit stays as it was.
TEST_F(CpuLimitTest, WhatCannotBeReadAnyMoreIsAsItWas) {
  write("proc/self/mountinfo", kMountV2);
  write("proc/self/cgroup", "0::/app\n");
  write("sys/fs/cgroup/app/cpu.max", "150000 100000\n");
  rt::CpuLimit limit;
  limit.find(root_.string());
  EXPECT_EQ(limit.quota_milli(), 1500);
  fs::remove(root_ / "sys/fs/cgroup/app/cpu.max");
  EXPECT_EQ(limit.quota_milli(), 1500);
  write("sys/fs/cgroup/app/cpu.max", "max 100000\n");
  EXPECT_EQ(limit.quota_milli(), 0);
}

TEST_F(CpuLimitTest, ALimitBelowOneCpuStillMeansOne) {
  write("proc/self/mountinfo", kMountV2);
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/cpu.max", "10000 100000\n");
  rt::CpuLimit limit;
  limit.find(root_.string());
  EXPECT_EQ(limit.cpus(), 1);
}

TEST_F(CpuLimitTest, APartOfACpuCountsAsOneMore) {
  rt::CpuLimit unlimited;
  unlimited.find(root_.string());
  write("proc/self/mountinfo", kMountV2);
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/cpu.max", "100100 100000\n");
  rt::CpuLimit limit;
  limit.find(root_.string());
  EXPECT_EQ(limit.cpus(), std::min(2, unlimited.cpus())) << "of the CPUs that the process may use";
}

// The number of Ps follows a limit that changes while the program runs. (The program's choice of three Ps comes
// first, so that sysmon does not read the limit while the test sets the simulated one.)
TEST_F(CpuLimitTest, IsFollowedWhileTheProgramRuns) {
  write("proc/self/mountinfo", kMountV2);
  write("proc/self/cgroup", "0::/app\n");
  write("sys/fs/cgroup/app/cpu.max", "max 100000\n");
  rt::CpuLimit now;
  now.find(root_.string());
  testing::run_with(3, [this, &now] {
    rt::Sched& sched = *rt::active();
    sched.cpu_limit.find(root_.string());
    write("sys/fs/cgroup/app/cpu.max", "50000 100000\n");
    sched.procs_fixed = false;
    testing::yield_until([] { return max_procs() == 1; });
    write("sys/fs/cgroup/app/cpu.max", "max 100000\n");
    testing::yield_until([&now] { return max_procs() == now.cpus(); });
  });
}

// -- The environment.

class EnvironmentTest : public ::testing::Test {
 protected:
  void TearDown() override {
    unsetenv("TUZA_MAXPROCS");
    unsetenv("TUZA_DEBUG");
  }
};

TEST_F(EnvironmentTest, MaxProcsIsTakenFromIt) {
  setenv("TUZA_MAXPROCS", "3", 1);
  run([] { EXPECT_EQ(max_procs(), 3); });
  run(RunOptions{.max_procs = 2}, [] { EXPECT_EQ(max_procs(), 2) << "the program's word goes first"; });
}

TEST_F(EnvironmentTest, NonsenseIsNamedAndIgnored) {
  for (const char* text : {"0", "-1", "two", "3x", "257"}) {
    setenv("TUZA_MAXPROCS", text, 1);
    ::testing::internal::CaptureStderr();
    run([] { EXPECT_GE(max_procs(), 1); });
    const std::string printed = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(printed.find(std::string("TUZA_MAXPROCS: expected a number from 1 to 256, not '") + text),
              std::string::npos)
        << printed;
  }
}

TEST(DebugOptions, ParsesWhatItKnows) {
  const rt::DebugOptions options = rt::DebugOptions::parse("schedtrace=250,scheddetail=1");
  EXPECT_EQ(options.schedtrace_ms, 250);
  EXPECT_TRUE(options.scheddetail);
  EXPECT_EQ(rt::DebugOptions::parse("").schedtrace_ms, 0);
}

TEST(DebugOptions, NamesWhatItDoesNotKnow) {
  for (const char* item : {"schedtrace", "schedtrace=", "schedtrace=-5", "schedtrace=9999999",
                           "scheddetail=2", "gctrace=1", "=", "schedtrace=1x"}) {
    ::testing::internal::CaptureStderr();
    const rt::DebugOptions options = rt::DebugOptions::parse(item);
    EXPECT_EQ(options.schedtrace_ms, 0) << item;
    EXPECT_NE(::testing::internal::GetCapturedStderr().find(std::string("'") + item + "'"),
              std::string::npos);
  }
}

TEST_F(EnvironmentTest, SchedtracePrintsALineInGosWords) {
  setenv("TUZA_DEBUG", "schedtrace=5,scheddetail=1", 1);
  ::testing::internal::CaptureStderr();
  run(RunOptions{.max_procs = 2}, [] { sleep_for(std::chrono::seconds(1)); });
  const std::string printed = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(printed.find("ms: gomaxprocs=2 idleprocs=2 threads="), std::string::npos) << printed;
  EXPECT_NE(printed.find(" runqueue=0 [0 0]\n"), std::string::npos) << printed;
  EXPECT_NE(printed.find("  P1: status=idle schedtick="), std::string::npos) << printed;
  EXPECT_NE(printed.find("  M0: tid="), std::string::npos) << printed;
  EXPECT_NE(printed.find("  G1: status=waiting(sleep)"), std::string::npos) << printed;
}

// -- Stacks.

class StackTest : public ::testing::TestWithParam<rt::StackArenas::GuardMode> {};
INSTANTIATE_TEST_SUITE_P(Guards, StackTest,
                         ::testing::Values(rt::StackArenas::GuardMode::kAdvise,
                                           rt::StackArenas::GuardMode::kProtect,
                                           rt::StackArenas::GuardMode::kNone));

TEST_P(StackTest, EveryByteBetweenLowAndTopIsUsableAndStacksDoNotOverlap) {
  rt::StackArenas arenas;
  arenas.set_guard_mode(GetParam());
  std::vector<rt::Stack> stacks;
  for (std::uint8_t c = 0; c < rt::kStackClassBytes.size(); ++c) {
    for (int i = 0; i < 20; ++i) {
      stacks.push_back(arenas.carve(c, rt::Claim::kMust));
      ASSERT_TRUE(stacks.back().exists());
      EXPECT_EQ(stacks.back().guarded, GetParam() != rt::StackArenas::GuardMode::kNone);
    }
  }
  std::sort(stacks.begin(), stacks.end(), [](auto& a, auto& b) { return a.guard_low < b.guard_low; });
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    const rt::Stack& stack = stacks[i];
    *reinterpret_cast<char*>(stack.low) = 1;
    *reinterpret_cast<char*>(stack.top - 1) = 1;
    EXPECT_GE(stack.top - stack.guard_low, rt::kStackClassBytes[stack.stack_class] - 1024);
    if (i > 0) {
      EXPECT_GE(stack.guard_low, stacks[i - 1].top);
    }
  }
}

TEST(Stack, TopsAreColoured) {
  rt::StackArenas arenas;
  std::set<std::uintptr_t> lines;
  for (int i = 0; i < 64; ++i) lines.insert(arenas.carve(1, rt::Claim::kMust).top % 4096);
  EXPECT_EQ(lines.size(), 16u);
}

TEST(Stack, TrimGivesTheMemoryBackAndKeepsTheGuard) {
  rt::StackArenas arenas;
  rt::Stack stack = arenas.carve(1, rt::Claim::kMust);
  auto* low = reinterpret_cast<char*>(stack.low);
  std::memset(low, 7, stack.top - stack.low);
  rt::StackArenas::trim(stack);
  EXPECT_EQ(*low, 0);
  EXPECT_EQ(reinterpret_cast<char*>(stack.top)[-1], 0);
  if (stack.guarded) {
    EXPECT_DEATH(*(low - 1) = 1, "");
  }
}

TEST(Stack, TheSmallestSufficientClassIsChosen) {
  EXPECT_EQ(rt::stack_class_for(1), 0);
  EXPECT_EQ(rt::stack_class_for(64 << 10), 0);
  EXPECT_EQ(rt::stack_class_for((64 << 10) + 1), 1);
  EXPECT_EQ(rt::stack_class_for(1 << 20), 2);
  EXPECT_EQ(rt::stack_class_for(8 << 20), 3);
  EXPECT_EQ(rt::stack_class_for((8 << 20) + 1), 4);
  EXPECT_EQ(rt::stack_class_for(kStackBytesMax), 4);
  EXPECT_EQ(rt::stack_class_for(kStackBytesMax + 1), rt::kNoStackClass);
}

// Not instrumented: meanwhile sysmon may give some back, as it does every second.
[[gnu::no_sanitize_thread]] int dirty_stacks() {
  int count = 0;
  rt::GPool& gs = rt::active()->gs;
  for (std::size_t i = 0; i < gs.count(); ++i) count += gs.at(i).stack.dirty ? 1 : 0;
  return count;
}

TEST(GPool, UnusedStacksGoBackToTheSystemAndComeBackZeroed) {
  const testing::LongSlices long_slices;  // no goroutine uses the pool during the check
  constexpr int kBurst = rt::kTsan ? 1000 : 2000;
  testing::run_with(1, [] {
    const auto burst = [] {
      WaitGroup gate, done;
      gate.add(1);
      std::atomic<int> waiting{0};
      for (int i = 0; i < kBurst; ++i) {
        done.go([&] {
          ++waiting;
          gate.wait();
        });
      }
      testing::yield_until([&waiting] { return waiting.load() == kBurst; });
      gate.done();
      done.wait();
    };
    do {
      burst();
    } while (dirty_stacks() < kBurst / 2);  // in more than a second, sysmon may give back a part of it
    rt::active()->gs.scavenge();  // learns the low-water mark
    rt::active()->gs.scavenge();  // gives back what has not been needed since
    EXPECT_LE(dirty_stacks(), 2 * static_cast<int>(rt::GPool::kLocalMax));
    burst();
  });
}

// -- Text.

TEST(Line, WritesNumbersAddressesAndDurations) {
  rt::Line line(rt::Line::kNowhere);
  line << -5 << ' ' << std::uint64_t{18446744073709551615u} << ' ' << std::int64_t{INT64_MIN} << " ";
  line.hex(0xbeef) << " ";
  line.duration(1'500'000) << "|";
  line.duration(11'000'000'000) << "|";
  line.duration(7'200'000'000'000);
  EXPECT_EQ(line.text(), "-5 18446744073709551615 -9223372036854775808 0xbeef 1 ms|11 s|120 min");
}

TEST(Line, CutsWhatDoesNotFit) {
  rt::Line line(rt::Line::kNowhere);
  for (int i = 0; i < 100; ++i) line << "0123456789abcdefghij";
  EXPECT_EQ(line.text().size(), 1000u);
}

TEST(Error, SaysWhatWasTriedOnWhatAndWhy) {
  EXPECT_EQ(Error::from_errno(ECONNREFUSED, "dial", "127.0.0.1:1").message(),
            "dial 127.0.0.1:1: Connection refused");
  EXPECT_EQ(Error(Errc::kTimeout, "read").message(), "read: deadline exceeded");
  EXPECT_TRUE(Error(Errc::kTimeout, "read").timeout());
  EXPECT_TRUE(Error::from_errno(EPIPE, "write").is(std::errc::broken_pipe));
}

std::vector<std::string> g_logged;

TEST(LogDeathTest, ASinkWithoutMemoryLosesNoLine) {
  EXPECT_EXIT(
      {
        set_log_sink([](LogLevel, std::string_view) { throw std::bad_alloc(); });
        log_line(LogLevel::kError, "tuza: no memory for a request");
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "^tuza: no memory for a request\n$");
}

TEST(Log, AtMostOneLineASecondAndTheRestCounted) {
  g_logged.clear();
  set_log_sink([](LogLevel, std::string_view line) { g_logged.emplace_back(line); });
  LogLimiter limiter;
  for (int i = 0; i < 100; ++i) limiter.log(LogLevel::kWarning, "trouble");
  EXPECT_EQ(g_logged, std::vector<std::string>{"trouble"});
  std::this_thread::sleep_for(std::chrono::milliseconds(1050));
  limiter.log(LogLevel::kWarning, "trouble");
  set_log_sink(nullptr);
  ASSERT_EQ(g_logged.size(), 2u);
  EXPECT_EQ(g_logged[1], "trouble (and 99 more)");
}

}  // namespace
}  // namespace tuza
