// fork(), exec and tracers while goroutines compute.
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <tuza/sched/arch/current_m.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/go.h>
#include <tuza/sched/preempt.h>
#include <tuza/sched/rt/slice/preempt_signal.h>
#include <tuza/sched/sync/mutex.h>
#include <tuza/sched/tests/children.h>
#include <tuza/sched/tests/hogs.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tuza {
namespace {

using namespace testing;

constexpr const char* kRefusal = "the child of a fork() has none of the threads that run goroutines";

class ForkTest : public testing::WithProcs {};
TUZA_WITH_PROCS(ForkTest);

// -- Children that call exec.

TEST_P(ForkTest, AProgramCanBeStartedWhileOthersCompute) {
  run_with(GetParam(), [] {
    Hogs hogs(kHogs);
    wait_for([&hogs] { return hogs.surplus_is_suspended(); });
    for (int i = 0; i < 10; ++i) {
      const Ended ended = blocking(
          [] { return in_fork([] { ::execl("/bin/sh", "sh", "-c", "echo hello >&2; exit 5", nullptr); }); });
      EXPECT_TRUE(ended.with_code(5)) << ended.status;
      EXPECT_EQ(ended.said, "hello\n");
    }
  });
}

TEST_P(ForkTest, HogsMayStartProgramsToo) {
  run_with(GetParam(), [] {
    std::atomic<int> done = 0, wrong = 0;
    Hogs hogs(kHogs, [&](int) {
      compute(1, 100'000);
      std::string name = "true";
      char* const arguments[] = {name.data(), nullptr};
      pid_t child = -1;
      int status = -1;
      if (::posix_spawnp(&child, "true", nullptr, nullptr, arguments, environ) == 0) {
        while (::waitpid(child, &status, 0) != child) {
        }
      }
      wrong += status != 0 ? 1 : 0;
      ++done;
    });
    wait_for([&done] { return done >= 50; });
    EXPECT_EQ(wrong, 0);
  });
}

// -- Children that do not.

TEST_P(ForkTest, AChildMayDoWhatNeedsNoOtherThread) {
  run_with(GetParam(), [] {
    Hogs hogs(kHogs);
    wait_for([&hogs] { return hogs.surplus_is_suspended(); });
    const Ended ended = blocking([] {
      return in_fork([] {
        const std::vector<std::string> strings(1000, std::string(1000, 'x'));
        ::raise(SIGURG);
        if (compute(1) == 0 || strings.back().size() != 1000) ::_exit(1);
      });
    });
    EXPECT_TRUE(ended.with_code(7)) << ended.status << ended.said;
  });
}

TEST_P(ForkTest, AChildThatCallsTheRuntimeIsToldWhyItCannot) {
  run_with(GetParam(), [] {
    Hogs hogs(2);
    WaitGroup never;
    never.add(1);
    const std::pair<const char*, std::function<void()>> calls[] = {
        {"go", [] { go([] {}); }},
        {"yield", [] { yield(); }},
        {"sleep_for", [] { sleep_for(std::chrono::milliseconds(1)); }},
        {"WaitGroup::wait", [&never] { never.wait(); }},
        {"checkpoint", [] { checkpoint(); }},
        {"BlockingCall", [] { const BlockingCall call(CallLength::kLong); }},
        {"lock_os_thread", [] { lock_os_thread(); }},
        {"run", [] { run([] {}); }},
    };
    for (const auto& [name, call] : calls) {
      const Ended ended = in_fork(call);
      EXPECT_TRUE(ended.by_signal(SIGABRT)) << name << " " << ended.status;
      EXPECT_TRUE(ended.said_this(kRefusal)) << name << ": " << ended.said;
    }
    never.done();
  });
}

TEST_P(ForkTest, SoIsTheChildOfAThreadThatIsNoGoroutine) {
  run_with(GetParam(), [] {
    std::array<Ended, 2> ended;
    blocking([&ended] {
      std::thread([&ended] {
        ended[0] = in_fork([] { go([] {}); });
        ended[1] = in_fork([] { run([] {}); });
      }).join();
    });
    for (const Ended& one : ended) {
      EXPECT_TRUE(one.by_signal(SIGABRT)) << one.status;
      EXPECT_TRUE(one.said_this(kRefusal)) << one.said;
    }
  });
}

// Sysmon, which would resume the goroutine, does not exist in the child.
TEST_P(ForkTest, AChildWhoseGoroutineWasAskedToStopRuns) {
  run_with(GetParam(), [] {
    const BlockingCall call(CallLength::kLong);  // gives its P away
    const NoPreempt unasked;
    std::atomic<std::uint32_t>& suspend = rt::current_m()->suspend;
    suspend = static_cast<std::uint32_t>(rt::Suspend::kAsked);
    const Ended ended = in_fork([] {
      // As if the scope had ended before the fork.
      rt::current_m()->current->no_preempt = 0;
      ::raise(SIGURG);
    });
    suspend = static_cast<std::uint32_t>(rt::Suspend::kRun);
    EXPECT_TRUE(ended.with_code(7)) << ended.status;
  });
}

// -- Locks that fork() itself takes. The holder of such a lock may be suspended, and fork() must not wait for
// the holder's turn. Such a wait stopped a program with 100 goroutines that allocate for seconds: glibc takes
// the lock of each arena, one after the other.

// As many goroutines as may compute, which no signal suspends: no suspended goroutine gets a turn until a
// child has been born. The child reports its birth itself, because the forking goroutine may be suspended as
// soon as fork() has returned.
class Occupants {
 public:
  Occupants() {
    born_ = static_cast<std::atomic<bool>*>(
        ::mmap(nullptr, sizeof *born_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    new (born_) std::atomic<bool>(false);
    for (std::uint64_t& id : ids_) {
      group_.go([this, &id] {
        const NoPreempt all_the_time;
        id = goroutine_id();
        while (!born_->load(std::memory_order_relaxed)) compute(1);
      });
    }
  }
  ~Occupants() { ::munmap(born_, sizeof *born_); }
  Occupants(const Occupants&) = delete;
  Occupants& operator=(const Occupants&) = delete;

  // Forks when nothing else computes and `others` goroutines are suspended. Returns when the occupants have
  // ended.
  enum class By { kGoroutine, kThread };
  void fork_beside(int others, By who = By::kGoroutine) {
    wait_for([others] {
      const SchedStats now = sched_stats();
      return now.lane_suspended == static_cast<std::uint32_t>(others) &&
             now.lane_computing == static_cast<std::uint32_t>(max_procs());
    });
    pid_t child = -1;
    const auto fork = [&] {
      child = ::fork();
      if (child != 0) return;
      *born_ = true;
      ::_exit(5);
    };
    who == By::kGoroutine ? fork() : std::thread(fork).join();
    group_.wait();
    // One that has left the group may be suspended before its end: the next occupants would never let it go on.
    for (const std::uint64_t id : ids_) wait_for([id] { return !machine_of(id); });
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 5) << status;
  }

 private:
  std::vector<std::uint64_t> ids_ = std::vector<std::uint64_t>(static_cast<std::size_t>(max_procs()));
  std::atomic<bool>* born_;
  WaitGroup group_;
};

#if !defined(TUZA_ASAN) && !defined(TUZA_TSAN)  // which have an allocator with its own locks

TUZA_NOIPA void allocate_and_free() {
  std::array<void*, 200> blocks;
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = std::malloc(50 + i * 7);
  for (void* block : blocks) std::free(block);
}

TEST_P(ForkTest, ForkDoesNotWaitForGoroutinesSuspendedInMalloc) {
  run_with(GetParam(), [] {
    constexpr int kAllocators = 40;
    Hogs allocators(kAllocators, [](int) { allocate_and_free(); });
    for (int i = 0; i < 6; ++i) {  // some of them hold the lock of an arena
      Occupants().fork_beside(kAllocators, i % 2 == 0 ? Occupants::By::kGoroutine : Occupants::By::kThread);
    }
  });
}

#endif

// A library's lock, which its atfork handlers take around a fork. Prepare handlers registered first are
// called last: by then the runtime knows of the fork.
std::mutex g_library;
std::atomic<bool> g_library_forks{false}, g_library_waits{false};
void lock_library() {
  if (!g_library_forks) return;
  g_library_waits = true;
  g_library.lock();
}
void unlock_library() {
  if (g_library_forks) g_library.unlock();
}
const int g_library_registered = ::pthread_atfork(&lock_library, &unlock_library, &unlock_library);

TEST_P(ForkTest, ForkDoesNotWaitForASuspendedHolderOfALibrarysLock) {
  ASSERT_EQ(g_library_registered, 0);
  run_with(GetParam(), [] {
    for (int i = 0; i < 5; ++i) {
      g_library_waits = false;
      std::atomic<bool> held = false;
      WaitGroup holder;
      holder.go([&held] {
        const std::scoped_lock lock(g_library);
        held = true;
        while (!g_library_waits) compute(1);  // needs a turn
      });
      wait_for([&held] { return held.load(); });
      g_library_forks = true;
      Occupants().fork_beside(1);
      g_library_forks = false;
      holder.wait();
    }
  });
}

// In a suite, and so in a process, of its own because of ThreadSanitizer: it ends a child that starts threads
// if the parent had others when it forked, and threads of an earlier test may still be about to end.
class ForkWithoutRuntimeTest : public testing::WithProcs {};
TUZA_WITH_PROCS(ForkWithoutRuntimeTest);

TEST_P(ForkWithoutRuntimeTest, ItsChildMayStartOne) {
  const auto start_one = [procs = GetParam()] {
    const int status = run(RunOptions{.max_procs = procs}, [] {
      Hogs hogs(4);
      wait_for([&hogs] { return hogs.surplus_is_suspended() || max_procs() == 4; });
      return 9;
    });
    ::_exit(status);
  };
  const Ended before = in_fork(start_one);
  EXPECT_TRUE(before.with_code(9)) << before.status << before.said;
  if constexpr (rt::kTsan) return;
  run_with(2, [] { yield(); });
  const Ended afterwards = in_fork(start_one);
  EXPECT_TRUE(afterwards.with_code(9)) << afterwards.status << afterwards.said;
}

// -- Tracers.

// A process that traces this one and passes every signal on. Created before the runtime.
class Tracer {
 public:
  Tracer() {
    shared_ = static_cast<Shared*>(
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    new (shared_) Shared;
    const pid_t traced = ::getpid();
    tracer_ = ::fork();
    if (tracer_ == 0) trace(traced);
    ::prctl(PR_SET_PTRACER, tracer_);
  }
  ~Tracer() {
    ::kill(tracer_, SIGKILL);
    ::waitpid(tracer_, nullptr, 0);
    ::munmap(shared_, sizeof(Shared));
  }
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // Returns false if the system does not permit tracing. Blocks.
  [[nodiscard]] bool attach() {
    shared_->begin = true;
    while (shared_->attached == 0) ::usleep(1000);
    return shared_->attached > 0;
  }
  [[nodiscard]] int passed_on() const { return shared_->passed_on; }

 private:
  struct Shared {
    std::atomic<bool> begin{false};
    std::atomic<int> attached{0};  // negative: refused
    std::atomic<int> passed_on{0};
  };

  [[noreturn]] void trace(pid_t traced) {
    while (!shared_->begin) ::usleep(1000);
    int attached = 0;
    std::error_code none;
    for (const auto& task :
         std::filesystem::directory_iterator("/proc/" + std::to_string(traced) + "/task", none)) {
      const pid_t thread = std::stoi(task.path().filename().string());
      attached += ::ptrace(PTRACE_SEIZE, thread, nullptr, PTRACE_O_TRACECLONE) == 0 ? 1 : 0;
    }
    shared_->attached = attached > 0 ? attached : -1;
    for (int status = 0;;) {
      const pid_t thread = ::waitpid(-1, &status, __WALL);
      if (thread < 0) ::_exit(0);
      if (!WIFSTOPPED(status)) continue;
      const bool is_signal = (status >> 16) == 0;
      shared_->passed_on += is_signal ? 1 : 0;
      ::ptrace(PTRACE_CONT, thread, nullptr, is_signal ? WSTOPSIG(status) : 0);
    }
  }

  Shared* shared_ = nullptr;
  pid_t tracer_ = -1;
};

void compute_under(Tracer& tracer) {
  Hogs hogs(kHogs, [](int) { compute(1); });
  wait_for_suspensions(10);
  hogs.wait_for_turns(2);
  WaitGroup others;
  std::atomic<int> ran = 0;
  for (int i = 0; i < 50; ++i) others.go([&ran] { ++ran; });
  others.wait();
  EXPECT_EQ(ran, 50);
  EXPECT_GT(tracer.passed_on(), 0);
}

TEST_P(ForkTest, ATracerFromTheBeginningDisturbsNothing) {
  Tracer tracer;
  if (!tracer.attach()) GTEST_SKIP() << "ptrace is not permitted";
  run_with(GetParam(), [&tracer] { compute_under(tracer); });
}

TEST_P(ForkTest, ATracerThatAttachesMeanwhileAndGoesAwayDisturbsNothing) {
  auto tracer = std::make_unique<Tracer>();
  run_with(GetParam(), [&tracer] {
    Hogs hogs(kHogs, [](int) { compute(1); });
    wait_for_suspensions(5);
    if (!blocking([&tracer] { return tracer->attach(); })) return;
    hogs.end();
    compute_under(*tracer);
    Hogs more(kHogs, [](int) { compute(1); });
    wait_for_suspensions(5);
    blocking([&tracer] { tracer.reset(); });
    wait_for_suspensions(5);
    more.wait_for_turns(2);
  });
}

}  // namespace
}  // namespace tuza
