// The system calls of child processes, refused: each test in a process of its own.
#include <sys/syscall.h>
#include <tuza/netpoll/tests/failing_new.h>
#include <tuza/netpoll/tests/process_testing.h>
#include <tuza/netpoll/tests/refused_testing.h>
#include <tuza/sched/go.h>
#include <tuza/sched/sync/latch.h>
#include <tuza/sched/sync/wait_group.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <new>
#include <string>

namespace tuza::testing {
namespace {

using namespace std::chrono_literals;

// Runs `body` once the runtime has what it needs, and the call is refused.
Ended with_refused(int number, int error, const std::function<void()>& body) {
  return in_fork([&] {
    RefusedCalls kernel(number, error);
    run(RunOptions{.max_procs = 2}, [&] {
      EXPECT_EQ(printed({"echo", "hello"}), "hello\n");
      kernel.refuse_from_now_on();
      body();
    });
    net::testing::end_child(kernel);
  });
}

TEST(RefusedProcesses, WithoutPidfdAThreadWaitsAndAllElseIsTheSame) {
  for (const int error : {ENOSYS, EPERM}) {
    const Ended ended = with_refused(SYS_pidfd_open, error, [] {
      EXPECT_EQ(printed({"cat"}, {.input = "text"}), "text");
      const auto [ctx, cancel] = with_cancel(Context::background());
      Process process = Process::start(ctx, {"sleep", "1000"}).value();
      const auto [soon, cancel_soon] = with_timeout(Context::background(), 5ms);
      EXPECT_TRUE(process.wait(soon).error().timeout());
      cancel();
      EXPECT_EQ(process.wait()->signal(), SIGTERM);
      {
        const Process left = Process::start({"sleep", "1000"}).value();
      }
      EXPECT_TRUE(no_children());
    });
    EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
  }
}

TEST(RefusedProcesses, TooManyProcessesAreAnErrorThatNamesTheLimit) {
  const Ended ended = with_refused(SYS_clone3, EAGAIN, [] {
    const Result<Process> process = Process::start({"true"});
    ASSERT_FALSE(process);
    EXPECT_TRUE(process.error().is(std::errc::resource_unavailable_try_again));
    EXPECT_TRUE(process.error().message().starts_with("cannot create a process for true: "))
        << process.error().message();
  });
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}

TEST(RefusedProcesses, WithoutWaitidTheStatusIsAnError) {
  const Ended ended = with_refused(SYS_waitid, EPERM, [] {
    const Result<ExitStatus> status = Process::run({"true"});
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().message(), "wait true: Operation not permitted");
  });
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}

// Goroutines until there is no memory for the stack of another one.
void take_all_stacks(WaitGroup& group, Latch& end) {
  for (const std::size_t bytes : {std::size_t{1} << 20, std::size_t{0}}) {
    const auto wait = [&group, &end] {
      end.wait();
      group.done();
    };
    group.add(1);
    while (try_go({.stack_bytes = bytes}, wait)) group.add(1);
    group.done();
  }
}

TEST(RefusedProcesses, WithoutMemoryForTheWatcherThereIsNoChild) {
  const Ended ended = in_fork([] {
    limit_address_space(std::size_t{160} << 20);
    const int status = run(RunOptions{.max_procs = 2}, [] {
      EXPECT_EQ(printed({"echo", "hello"}), "hello\n");
      WaitGroup group;
      Latch end(1);
      std::string said;
      while (said.empty()) {  // memory may have come back: from a thread that could not be made, for instance
        take_all_stacks(group, end);
        try {
          const Result<Process> process = Process::start({"sleep", "1000"});
          if (!process) said = process.error().message();
        } catch (const std::bad_alloc&) {
          said = "there is no memory for anything else either";
        }
      }
      EXPECT_TRUE(said == "start sleep: Cannot allocate memory" || said.starts_with("there is no memory"))
          << said;
      EXPECT_TRUE(no_children());
      end.count_down();
      group.wait();
    });
    ::_exit(::testing::Test::HasFailure() ? 9 : status);
  });
  EXPECT_TRUE(ended.with_code(0)) << ended.status << ended.said;
}

// Wherever memory runs out, nobody is left who belongs to nobody.
TEST(RefusedProcesses, WithoutMemoryForAnythingElseThereIsNoChildEither) {
  const Ended ended = in_fork([] {
    run(RunOptions{.max_procs = 2}, [] {
      EXPECT_EQ(printed({"echo", "hello"}), "hello\n");
      bool started = false;
      for (int successes = 0; !started; ++successes) {
        const auto [ctx, cancel] = with_cancel(Context::background());
        const std::vector<std::string> command{"sleep", "1000"};
        try {
          fail_allocations_after(successes);
          Result<Process> process = Process::start(ctx, command, {.grace = 1ms});
          fail_allocations_after(-1);
          started = process.has_value();
        } catch (const std::bad_alloc&) {
          fail_allocations_after(-1);
        }
        EXPECT_TRUE(no_children()) << "after " << successes << " allocations";
      }
    });
    ::_exit(::testing::Test::HasFailure() ? 9 : 7);
  });
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}

}  // namespace
}  // namespace tuza::testing
