// Each system call that the scheduler makes, refused. docs/internals/system-calls.md states the effect of
// each refusal, and this test holds the page to it. (netpoll's own calls are covered by its tests.)
#include <signal.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/go.h>
#include <tuza/sched/rt/base/print.h>
#include <tuza/sched/stats.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/children.h>
#include <tuza/sched/tests/hogs.h>
#include <tuza/sched/tests/refused_calls.h>
#include <tuza/sched/tests/testing.h>

#include <chrono>
#include <ostream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using namespace testing;

enum class When { kFromTheStart, kLater, kNowAndThen };

struct RefusedCall {
  const char* name;
  int number;
  int error;
  When when;
  const char* says = "";  // required on standard error; "": nothing is required
  bool runs = true;       // false: the process ends with that message
};

std::ostream& operator<<(std::ostream& out, const RefusedCall& call) { return out << call.name; }

// A mixture of everything: hogs that have to be suspended, calls that block, sleepers, channels, threads that
// are not goroutines.
void work() {
  WaitGroup group;
  for (int i = 0; i < 6; ++i) {
    group.go([] {
      for (int k = 0; k < 20; ++k) compute(1, 1'000'000);
    });
  }
  for (int i = 0; i < 8; ++i) {
    group.go([] {
      for (int k = 0; k < 5; ++k) blocking([] { ::usleep(2000); });
      ::usleep(20'000);
    });
  }
  Chan<int> chan(3);
  for (int i = 0; i < 20; ++i) group.go([&chan, i] { chan.send(i); });
  int sum = 0;
  for (int i = 0; i < 20; ++i) {
    sum += *chan.recv();
    sleep_for(1ms);
  }
  std::atomic<int> outside = 0;
  try {
    std::thread([&] { go([&outside] { outside = 1; }); }).join();
  } catch (const std::system_error&) {
    outside = 1;  // no thread is available
  }
  group.wait();
  while (outside == 0) sleep_for(1ms);
  EXPECT_EQ(sum, 190);
}

constexpr const char* kLine = "a line on standard error";

// Needs more threads than before, and mappings for them: the calls wait for each other, until all are in progress or the
// kernel has refused what that takes.
void block_in_many(const RefusedCalls& kernel) {
  constexpr int kCalls = 60;
  std::atomic<int> in_call = 0;
  WaitGroup group;
  for (int i = 0; i < kCalls; ++i) {
    group.go([&] {
      blocking(CallLength::kLong, [&] {
        ++in_call;
        while (in_call < kCalls && kernel.refused() == 0) ::usleep(1000);
      });
    });
  }
  group.wait();
}

// In a process of its own. Exits with 7 if all went well.
void run_without(const RefusedCall& call) {
  RefusedCalls kernel(call.number, call.error);
  if (call.when == When::kFromTheStart) kernel.refuse_from_now_on();
  // A P that gets no memory for its first timer ends the process. With one P, that P has its timer already.
  const int procs = call.number == SYS_mmap ? 1 : 0;
  const int status = run(RunOptions{.max_procs = procs}, [&] {
    work();
    if (call.when == When::kLater) kernel.refuse_from_now_on();
    if (call.when == When::kNowAndThen) kernel.refuse_now_and_then();
    block_in_many(kernel);
    rt::Line() << kLine << "\n";
    work();
    return 7;
  });
  if (kernel.refused() == 0) ::_exit(8);  // nothing was tested
  ::_exit(::testing::Test::HasFailure() ? 9 : status);
}

constexpr auto kStart = When::kFromTheStart;
constexpr auto kAfterwards = When::kLater;
constexpr auto kNowAndThen = When::kNowAndThen;
constexpr const char* kNoThreads = "refuses the first threads of the runtime";

const RefusedCall kCalls[] = {
    {"membarrier_start", SYS_membarrier, EPERM, kStart},
    {"membarrier_later", SYS_membarrier, EPERM, kAfterwards},
    {"membarrier_no_memory", SYS_membarrier, ENOMEM, kNowAndThen},
    {"rt_tgsigqueueinfo_start", SYS_rt_tgsigqueueinfo, EPERM, kStart, "refuses to send signal"},
    {"rt_tgsigqueueinfo_later", SYS_rt_tgsigqueueinfo, EPERM, kAfterwards, "refuses to send signal"},
    {"rt_tgsigqueueinfo_full", SYS_rt_tgsigqueueinfo, EAGAIN, kNowAndThen},
    {"rt_sigaction_start", SYS_rt_sigaction, EPERM, kStart, "refuses a handler"},
    {"rt_sigaction_later", SYS_rt_sigaction, EPERM, kAfterwards},
    {"rt_sigprocmask_later", SYS_rt_sigprocmask, EPERM, kAfterwards},
    {"sigaltstack_start", SYS_sigaltstack, EPERM, kStart},
    {"sched_setattr_start", SYS_sched_setattr, EPERM, kStart},
    {"sched_getattr_start", SYS_sched_getattr, ENOSYS, kStart},
    {"sched_getaffinity_start", SYS_sched_getaffinity, EPERM, kStart},
    {"openat_start", SYS_openat, EACCES, kStart},
    {"openat_no_descriptor", SYS_openat, EMFILE, kAfterwards},
    {"openat_interrupted", SYS_openat, EINTR, kNowAndThen},
    {"read_proc", SYS_read, EPERM, kAfterwards},
    {"clock_gettime_start", SYS_clock_gettime, EPERM, kStart},
    {"clock_gettime_later", SYS_clock_gettime, EPERM, kAfterwards},
    {"madvise_start", SYS_madvise, EINVAL, kStart},
    {"madvise_no_memory", SYS_madvise, ENOMEM, kNowAndThen},
    {"mprotect_start", SYS_mprotect, ENOMEM, kStart, kNoThreads, false},
    {"mmap_start", SYS_mmap, ENOMEM, kStart, "no memory for the runtime", false},
    {"mmap_later", SYS_mmap, ENOMEM, kAfterwards},
    {"munmap_start", SYS_munmap, EPERM, kStart},
    {"clone3_start", SYS_clone3, EAGAIN, kStart, kNoThreads, false},
    {"clone3_later", SYS_clone3, EAGAIN, kAfterwards},
    {"clone3_now_and_then", SYS_clone3, ENOMEM, kNowAndThen},
    {"gettid_start", SYS_gettid, EPERM, kStart},
    {"getpid_start", SYS_getpid, EPERM, kStart, "refuses to send signal"},
    {"futex_interrupted", SYS_futex, EINTR, kNowAndThen},
    {"fcntl_start", SYS_fcntl, EPERM, kStart},
    {"prctl_start", SYS_prctl, EPERM, kStart},
    {"prlimit64_start", SYS_prlimit64, EPERM, kStart},
    {"close_start", SYS_close, EPERM, kStart},
    {"gettid_later", SYS_gettid, EPERM, kAfterwards},
    {"ppoll_start", SYS_ppoll, EPERM, kStart, kLine},
    {"ppoll_interrupted", SYS_ppoll, EINTR, kNowAndThen, kLine},
    {"fstat_start", SYS_fstat, EPERM, kStart, kLine},
    {"pwritev2_start", SYS_pwritev2, ENOSYS, kStart, kLine},
    {"pwritev2_later", SYS_pwritev2, EOPNOTSUPP, kAfterwards, kLine},
};

class RefusedCallTest : public ::testing::TestWithParam<RefusedCall> {};
INSTANTIATE_TEST_SUITE_P(Each, RefusedCallTest, ::testing::ValuesIn(kCalls),
                         [](const auto& c) { return std::string(c.param.name); });

TEST_P(RefusedCallTest, GoroutinesRunOnOrTheProcessSaysWhyNot) {
  const Ended ended = testing::in_fork([] { run_without(GetParam()); });
  const bool as_said = GetParam().says == kNoThreads ? ended.with_code(1) : ended.by_signal(SIGABRT);
  EXPECT_TRUE(GetParam().runs ? ended.with_code(7) : as_said) << ended.status << "\n" << ended.said;
  EXPECT_TRUE(ended.said_this(GetParam().says)) << ended.said;
}

// A thread limit that leaves room for the maker and sysmon, but for no M.
TEST(RefusedThreads, WithoutAThreadForGoroutinesTheProcessSaysSo) {
  const Ended ended = testing::in_fork([] {
    RefusedCalls kernel(SYS_clone3, EAGAIN);
    kernel.refuse_after(2);
    run([] {});
  });
  EXPECT_TRUE(ended.with_code(1)) << ended.status;
  EXPECT_TRUE(ended.said_this(kNoThreads)) << ended.said;
}

TEST(RefusedThreads, OneForGoroutinesIsEnough) {
  const Ended ended = testing::in_fork([] {
    RefusedCalls kernel(SYS_clone3, EAGAIN);
    kernel.refuse_after(3);
    run([] { work(); });
    ::_exit(kernel.refused() > 0 && !::testing::Test::HasFailure() ? 7 : 8);
  });
  EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
}

}  // namespace
}  // namespace tuza
