// Child processes: how they end, who waits, and that nothing of them is left.
#include <sys/wait.h>
#include <tuza/netpoll/process/child_end.h>
#include <tuza/netpoll/tests/process_testing.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/tests/children.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <optional>

namespace tuza::testing {
namespace {

using namespace std::chrono_literals;

class ProcessTest : public WithProcs {};
TUZA_WITH_PROCS(ProcessTest);

// Says "ready", and ends with status 0 when its input does.
const char* const kReader = "echo ready; read line; exit 0";
const char* const kStubborn = "trap '' TERM; echo ready; read line; read line";

Process start_ready(const Context& ctx, const std::string& script, ProcessOptions options = {}) {
  options.in = options.out = Stdio::pipe();
  Process process = Process::start(ctx, shell(script), options).value();
  EXPECT_EQ(read_some(process.out()), "ready\n");
  return process;
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

TEST_P(ProcessTest, WaitTellsHowTheChildHasEnded) {
  run_with(GetParam(), [] {
    EXPECT_TRUE(Process::run({"true"})->ok());
    const ExitStatus three = Process::run(shell("exit 3")).value();
    EXPECT_EQ(three.code(), 3);
    EXPECT_EQ(three.signal(), std::nullopt);
    EXPECT_FALSE(three.ok());
    EXPECT_EQ(three.message(), "exit status 3");
    const ExitStatus killed = Process::run(shell("kill -KILL $$")).value();
    EXPECT_EQ(killed.signal(), SIGKILL);
    EXPECT_EQ(killed.code(), std::nullopt);
    EXPECT_FALSE(killed.ok());
    EXPECT_EQ(killed.message(), "killed by SIGKILL");
    EXPECT_EQ(ExitStatus::killed(SIGSEGV, true).message(), "killed by SIGSEGV, core dumped");
  });
}

TEST_P(ProcessTest, OthersRunWhileManyWaitWithoutAThread) {
  run_with(GetParam(), [] {
    Process process = start_ready(Context::background(), kReader);
    WaitGroup group;
    for (int i = 0; i < 3; ++i) group.go([&] { EXPECT_TRUE(process.wait()->ok()); });
    wait_until_parked(3, WaitReason::kBarrier);
    if (has_pidfds()) wait_until_parked(1, WaitReason::kIoRead);
    Chan<int> chan(1);
    for (int i = 0; i < 1000; ++i) {
      chan.send(i);
      EXPECT_EQ(chan.recv(), i);
    }
    process.in().close();
    group.wait();
    EXPECT_TRUE(process.wait()->ok()) << "again";
    EXPECT_TRUE(no_children());
  });
}

TEST_P(ProcessTest, AThousandInARowLeaveNothing) {
  run_with(GetParam(), [] {
    EXPECT_TRUE(Process::output({"echo"}));  // opens what the poller needs
    const std::size_t before = open_descriptors();
    for (int i = 0; i < scaled(1000); ++i) {
      const Result<ProcessOutput> done = Process::output({"echo", "hello"});
      ASSERT_TRUE(done) << done.error().message();
      ASSERT_EQ(done->out, "hello\n");
    }
    yield_until([before] { return open_descriptors() == before; });  // each watcher closes its pidfd last
    EXPECT_TRUE(no_children());
  });
}

TEST_P(ProcessTest, FiftyAtOnce) {
  run_with(GetParam(), [] {
    WaitGroup group;
    for (int i = 0; i < 50; ++i) {
      group.go([i] {
        const std::string number = std::to_string(i);
        EXPECT_EQ(printed(shell("read x; echo $x; exit 0"), {.input = number + "\n"}), number + "\n");
      });
    }
    group.wait();
    EXPECT_TRUE(no_children());
  });
}

TEST_P(ProcessTest, TheContextOfItsStartEndsIt) {
  run_with(GetParam(), [] {
    const auto [ctx, cancel] = with_cancel(Context::background());
    Process process = start_ready(ctx, kReader, {.grace = 1h});
    cancel();
    EXPECT_EQ(process.wait()->signal(), SIGTERM);
    EXPECT_TRUE(Process::start(ctx, {"true"}).error().cancelled()) << "it has ended before";
    EXPECT_TRUE(no_children());
  });
}

TEST_P(ProcessTest, WhoIgnoresTheRequestIsKilledAfterTheGraceTime) {
  run_with(GetParam(), [] {
    const auto [ctx, cancel] = with_cancel(Context::background());
    Process with_grace = start_ready(ctx, kStubborn, {.grace = 20ms});
    Process without = start_ready(ctx, kStubborn, {.grace = 0ms});
    cancel();
    EXPECT_EQ(with_grace.wait()->signal(), SIGKILL);
    EXPECT_EQ(without.wait()->signal(), SIGKILL);
  });
}

TEST_P(ProcessTest, RunAndOutputReturnTheCauseOfTheirContext) {
  run_with(GetParam(), [] {
    const auto [ctx, cancel] = with_timeout(Context::background(), 20ms);
    EXPECT_TRUE(Process::run(ctx, {"sleep", "1000"}).error().timeout());
    EXPECT_TRUE(Process::output(ctx, {"sleep", "1000"}).error().timeout());
    const auto [soon, cancel_soon] = with_timeout(Context::background(), 20ms);
    EXPECT_TRUE(Process::output(soon, {"sleep", "1000"}).error().timeout());
    EXPECT_TRUE(no_children());
  });
}

TEST_P(ProcessTest, TheContextOfAWaitEndsOnlyTheWait) {
  run_with(GetParam(), [] {
    Process process = start_ready(Context::background(), kReader);
    const auto [ctx, cancel] = with_cancel(Context::background());
    WaitGroup group;
    group.go([&, &ctx = ctx] { EXPECT_TRUE(process.wait(ctx).error().cancelled()); });
    wait_until_parked(1, WaitReason::kBarrier);
    cancel();
    group.wait();
    EXPECT_TRUE(process.in().write_all("a line\n"));
    EXPECT_TRUE(process.wait()->ok());
  });
}

TEST_P(ProcessTest, TheDestructorEndsIt) {
  run_with(GetParam(), [] {
    int pid = 0;
    {
      Process process =
          start_ready(Context::background(), "trap '' TERM; " + std::string(kReader), {.grace = 1h});
      pid = process.pid();
      EXPECT_TRUE(exists(pid));
    }  // its input ends, too
    EXPECT_FALSE(exists(pid));
    {
      const Process process = start_ready(Context::background(), kStubborn, {.grace = 20ms});
      pid = process.pid();
    }
    EXPECT_FALSE(exists(pid));
    Process one = start_ready(Context::background(), kReader);
    pid = one.pid();
    one = Process();
    EXPECT_FALSE(exists(pid)) << "another one took its place";
    EXPECT_TRUE(no_children());
  });
}

TEST_P(ProcessTest, ADetachedOneRunsOnAndIsReaped) {
  run_with(GetParam(), [] {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const auto [ctx, cancel] = with_cancel(Context::background());
    int pid = 0;
    {
      Process process = Process::start(ctx, {"cat"}, {.in = Stdio::descriptor(ends[0])}).value();
      pid = process.pid();
      process.detach();
      EXPECT_TRUE(process.wait().error().closed());
      cancel();
    }
    EXPECT_TRUE(exists(pid));
    ::close(ends[0]);
    ::close(ends[1]);
    yield_until([pid] { return !exists(pid); });
    EXPECT_TRUE(no_children());
  });
}

TEST_P(ProcessTest, SignalsReachItWhileItRuns) {
  run_with(GetParam(), [] {
    Process process = start_ready(Context::background(), "trap 'exit 7' USR1; " + std::string(kReader));
    EXPECT_TRUE(process.signal(SIGUSR1));
    EXPECT_EQ(process.wait()->code(), 7);
    EXPECT_TRUE(process.signal(SIGUSR1).error().is(std::errc::no_such_process));
    process.stop();
    EXPECT_EQ(process.wait()->code(), 7);
  });
}

#if defined(TUZA_PORTABLE)
// As macOS tells of them, whatever is asked.
TEST_P(ProcessTest, AChildThatHasStoppedHasNotEnded) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(SIGSTOP);
    ::_exit(3);
  }
  constexpr int kAsked = WEXITED | WSTOPPED | WNOWAIT;
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(child), &info, kAsked) == 0 && info.si_code != CLD_STOPPED) {
  }
  EXPECT_EQ(tuza::detail::wait_for_end(-1, child, &info, kAsked | WNOHANG), 0);
  EXPECT_EQ(info.si_pid, 0);
  ::kill(child, SIGCONT);
  EXPECT_EQ(tuza::detail::wait_for_end(-1, child, &info, WEXITED | WSTOPPED), 0);
  EXPECT_EQ(info.si_status, 3);
}
#endif

TEST_P(ProcessTest, AGroupEndsAsAWhole) {
  run_with(GetParam(), [] {
    // The one in the background ignores SIGTERM, and holds the pipe.
    const std::string script = "(trap '' TERM; exec sleep 1000) & echo ready; wait";
    Process process = start_ready(Context::background(), script, {.own_group = true});
    EXPECT_EQ(::getpgid(process.pid()), process.pid());
    process.stop();
    EXPECT_EQ(process.wait()->signal(), SIGTERM);
    EXPECT_EQ(read_some(process.out()), "") << "the last holder of the pipe is gone";
  });
}

TEST(ProcessOfAnEarlierRun, IsKilledByItsDestructorOrWaitedFor) {
  std::optional<Process> left, waited_for;
  run(RunOptions{.max_procs = 2}, [&] {
    left.emplace(start_ready(Context::background(), kStubborn));
    waited_for.emplace(start_ready(Context::background(), kReader));
  });
  const int pid = left->pid();
  EXPECT_TRUE(exists(pid));
  left.reset();
  EXPECT_FALSE(exists(pid));
  run(RunOptions{.max_procs = 2}, [&] {
    waited_for->in().close();
    EXPECT_TRUE(waited_for->wait()->ok());
  });
  waited_for.reset();
  EXPECT_TRUE(no_children());
}

TEST_P(ProcessTest, AStatusThatTheKernelHasDroppedIsAnError) {
  run_with(GetParam(), [] {
    ::signal(SIGCHLD, SIG_IGN);  // the kernel reaps
    const Result<ExitStatus> status = Process::run({"true"});
    ::signal(SIGCHLD, SIG_DFL);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message(), "wait true: No child processes");
  });
}

// TSan does not hold the locks of its allocator across fork().
#if !defined(TUZA_TSAN)
TEST_P(ProcessTest, AForkedChildLeavesTheChildrenOfItsParentAlone) {
  run_with(GetParam(), [] {
    static std::optional<Process> process;  // which the forked child destroys
    process.emplace(start_ready(Context::background(), kReader));
    const Ended ended = in_fork([] { std::exit(6); });
    EXPECT_TRUE(ended.with_code(6)) << ended.status << ended.said;
    EXPECT_TRUE(process->in().write_all("a line\n"));
    EXPECT_TRUE(process->wait()->ok());
    process.reset();
  });
}
#endif

}  // namespace
}  // namespace tuza::testing
