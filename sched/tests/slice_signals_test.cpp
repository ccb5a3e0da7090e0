// The signal that suspends goroutines, among the signals, handlers and masks of the rest of the program.
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <tuza/sched/arch/current_m.h>
#include <tuza/sched/arch/interrupted.h>
#include <tuza/sched/blocking.h>
#include <tuza/sched/log.h>
#include <tuza/sched/preempt.h>
#include <tuza/sched/rt/base/futex.h>
#include <tuza/sched/rt/base/thread_state.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/rt/slice/preempt_signal.h>
#include <tuza/sched/tests/children.h>
#include <tuza/sched/tests/hogs.h>

#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
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
using testing::wait_for_suspensions;

// -- Handlers that the tests install, and what they record.

std::atomic<int> g_seen{0};
void count_plainly(int) { ++g_seen; }
void count_with_info(int, siginfo_t*, void*) { ++g_seen; }

struct sigaction handler_of(int signal) {
  struct sigaction action{};
  sigaction(signal, nullptr, &action);
  return action;
}

struct sigaction g_before_library{};
void library_handler(int signal, siginfo_t* info, void* context) {
  ++g_seen;
  g_before_library.sa_sigaction(signal, info, context);
}
// Like well-behaved libraries: the previous handler is called, too.
void install_library_handler() {
  struct sigaction action{};
  action.sa_sigaction = &library_handler;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigaction(SIGURG, &action, &g_before_library);
}

std::atomic<int> g_moves{0};
void count_moves(LogLevel, std::string_view line) {
  g_moves += line.find("was replaced; goroutines are now suspended by signal") != line.npos ? 1 : 0;
}

class SignalsTest : public testing::WithProcs {
 protected:
  void SetUp() override {
    sigaction(SIGURG, nullptr, &before_);
    g_seen = g_moves = 0;
    set_log_sink(&count_moves);
  }
  void TearDown() override {
    sigaction(SIGURG, &before_, nullptr);
    set_log_sink(nullptr);
  }

 private:
  struct sigaction before_{};
};
TUZA_WITH_PROCS(SignalsTest);

// -- Storms.

// An outside thread that sends SIGURG about ten thousand times a second, to the process and to each M in
// turn. Created and destroyed inside tuza::run.
class Storm {
 public:
  Storm() : thread_([this] { blow(); }) {}
  ~Storm() {
    stop_ = true;
    thread_.join();
  }
  Storm(const Storm&) = delete;
  Storm& operator=(const Storm&) = delete;
  [[nodiscard]] int sent() const { return sent_; }

 private:
  void blow() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    for (std::size_t next = 0; !stop_; ++next) {
      ::kill(::getpid(), SIGURG);
      const std::vector<MachineStats> ms = machine_stats();
      ::syscall(SYS_tgkill, ::getpid(), ms[next % ms.size()].thread_id, SIGURG);
      sent_ += 2;
      std::this_thread::sleep_for(100us);
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<int> sent_{0};
  std::thread thread_;
};

constexpr int kStorm = scaled(3000) > 500 ? scaled(3000) : 500;

// Goroutines that start, meet, sleep and end until `enough` returns true.
template <class Condition>
void work_until(Condition&& enough) {
  while (!enough()) {
    std::atomic<int> ran = 0;
    WaitGroup group;
    for (int i = 0; i < 20; ++i) {
      group.go([&ran, i] {
        if (i % 4 == 0) sleep_for(100us);
        yield();
        ++ran;
      });
    }
    group.wait();
    ASSERT_EQ(ran, 20);
  }
}

TEST_P(SignalsTest, AStormFromAnotherThreadChangesNothing) {
  run_with(GetParam(), [] {
    const std::uint64_t right = compute(5, 50'000);
    std::atomic<int> wrong = 0;
    Storm storm;
    Hogs hogs(kHogs, [&](int) { wrong += compute(5, 50'000) != right ? 1 : 0; });
    work_until([&storm] { return storm.sent() >= kStorm; });
    hogs.wait_for_turns(1);
    EXPECT_EQ(wrong, 0);
  });
}

TEST_P(SignalsTest, AStormFromAnotherProcessChangesNothing) {
  const pid_t me = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    for (int i = 0; i < 500'000 && ::kill(me, SIGURG) == 0; ++i) ::usleep(50);
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  run_with(GetParam(), [] {
    Hogs hogs(kHogs, [](int) { compute(5); });
    const auto end = std::chrono::steady_clock::now() + 300ms;
    work_until([end] { return std::chrono::steady_clock::now() >= end; });
    hogs.wait_for_turns(1);
  });
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_P(SignalsTest, ExceptionsInFlightSurviveAStorm) {
  run_with(GetParam(), [] {
    std::atomic<int> wrong = 0;
    Storm storm;
    Hogs hogs(kHogs, [&wrong](int i) {
      try {
        try {
          throw std::runtime_error(std::to_string(i));
        } catch (const std::runtime_error&) {
          compute(1, 200);
          throw;
        }
      } catch (const std::runtime_error& error) {
        wrong += error.what() != std::to_string(i) || std::uncaught_exceptions() != 0 ? 1 : 0;
      }
    });
    work_until([&storm] { return storm.sent() >= kStorm; });
    EXPECT_EQ(wrong, 0);
  });
}

TEST_P(SignalsTest, LockedGoroutinesKeepTheirThreadsInAStorm) {
  run_with(GetParam(), [] {
    std::atomic<bool> stop = false;
    std::atomic<int> moved = 0;
    Storm storm;
    WaitGroup group;
    for (int i = 0; i < kHogs; ++i) {
      group.go([&] {
        lock_os_thread();
        const long thread = ::syscall(SYS_gettid);
        while (!stop) {
          compute(1, 100'000);
          yield();
          moved += ::syscall(SYS_gettid) != thread ? 1 : 0;
        }
        unlock_os_thread();
      });
    }
    work_until([&storm] { return storm.sent() >= kStorm; });
    stop = true;
    group.wait();
    EXPECT_EQ(moved, 0);
  });
}

TEST_P(SignalsTest, ThePsMayBecomeMoreOrFewerInAStorm) {
  run_with(GetParam(), [] {
    std::mt19937 random(2);
    Storm storm;
    Hogs hogs(kHogs, [](int) { compute(1); });
    work_until([&] {
      set_max_procs(static_cast<int>(random() % 4) + 1);
      return storm.sent() >= kStorm;
    });
    hogs.wait_for_turns(1);
  });
}

// -- Handlers of the program.

TEST_P(SignalsTest, AHandlerThatWasThereBeforeGetsTheSignalsOfOthersAndNoneOfOurs) {
  for (const bool with_info : {false, true}) {
    g_seen = 0;
    struct sigaction action{};
    if (with_info) {
      action.sa_sigaction = &count_with_info;
      action.sa_flags = SA_SIGINFO;
    } else {
      action.sa_handler = &count_plainly;
    }
    sigaction(SIGURG, &action, nullptr);
    run_with(GetParam(), [] {
      {
        // The hogs lose their Ps and regain them, so that some are asked to stop just as they leave the lane.
        Hogs hogs(kHogs, [](int) {
          compute(1, 5'000'000);
          yield();
        });
        wait_for_suspensions(5);
      }
      Hogs hogs(kHogs);
      wait_for_suspensions(10);
      EXPECT_EQ(g_seen, 0);
      const NoPreempt unasked;  // a runtime signal on its way to this thread would swallow this one
      for (int i = 1; i <= 20; ++i) {
        // ThreadSanitizer delays a process-directed signal while the thread that receives it sleeps.
        rt::kTsan || i % 2 == 0 ? ::raise(SIGURG) : ::kill(::getpid(), SIGURG);
        wait_for([i] { return g_seen >= i; });
      }
      EXPECT_EQ(g_seen, 20);
    });
    EXPECT_EQ(handler_of(SIGURG).sa_sigaction, action.sa_sigaction);
  }
}

// The goroutine has left the lane, or sysmon has given up, before the signal arrives.
TEST_P(SignalsTest, ASignalOfOursThatComesTooLateIsNotTakenForAnother) {
  ::signal(SIGURG, &count_plainly);
  run_with(GetParam(), [] {
    const NoPreempt unasked;
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(rt::active()->preempt_signal.send(*rt::current_m()));
    EXPECT_EQ(g_seen, 0);
    ::raise(SIGURG);
    EXPECT_EQ(g_seen, 1);
  });
}

TEST_P(SignalsTest, WhenALibraryTakesTheSignalAnotherOneIsUsed) {
  run_with(GetParam(), [] {
    Hogs hogs(kHogs);
    wait_for([&hogs] { return hogs.surplus_is_suspended(); });
    install_library_handler();
    wait_for_suspensions(10);
    wait_for([&hogs] { return hogs.surplus_is_suspended(); });
    EXPECT_EQ(g_moves, 1);
    const int before = g_seen;
    ::raise(SIGURG);
    wait_for([before] { return g_seen > before; });
  });
  EXPECT_EQ(handler_of(SIGURG).sa_sigaction, &library_handler);
}

// The runtime does not see this goroutine's signal. The goroutine must be asked again.
TEST_P(SignalsTest, IsSuspendedThoughALibraryGotTheSignal) {
  run_with(GetParam(), [] {
    std::atomic<const rt::M*> m = nullptr;
    std::atomic<bool> stop = false, unblock = false;
    WaitGroup group;
    group.go([&] {
      sigset_t urgent;
      sigemptyset(&urgent);
      sigaddset(&urgent, SIGURG);
      pthread_sigmask(SIG_BLOCK, &urgent, nullptr);
      m = rt::current_m();
      while (!unblock) compute(1);
      pthread_sigmask(SIG_UNBLOCK, &urgent, nullptr);
      while (!stop) compute(1);
    });
    Hogs hogs(kHogs);
    const auto is = [&m](rt::Suspend state) {
      const rt::M* now = m;
      return now != nullptr && now->suspend.load() == static_cast<std::uint32_t>(state);
    };
    wait_for([&is] { return is(rt::Suspend::kAsked); });
    // Sysmon sends the signal behind that; a handler that it finds to be foreign by then makes it use another one.
    const std::uint64_t tick = rt::active()->sysmon.ticks();
    wait_for([tick] { return rt::active()->sysmon.ticks() >= tick + 2; });
    ::signal(SIGURG, &count_plainly);
    unblock = true;
    wait_for([] { return g_seen > 0; });
    wait_for([&is] { return is(rt::Suspend::kStopped); });
    stop = true;
    group.wait();
  });
}

[[noreturn]] void run_twice_with_a_library_between() {
  ::alarm(testing::kChildSecondsMax);
  run(RunOptions{.max_procs = 2}, [] { install_library_handler(); });
  run(RunOptions{.max_procs = 2}, [] {
    ::raise(SIGURG);
    Hogs hogs(kHogs);
    wait_for([&hogs] { return hogs.surplus_is_suspended(); });
  });
  std::_Exit(g_seen == 1 ? 7 : 1);
}

TEST(SignalsDeathTest, AHandlerThatCallsOursIsNotCalledByOursInTheNextRuntime) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_twice_with_a_library_between(), ::testing::ExitedWithCode(7), "");
}

// -- Masks.

TEST_P(SignalsTest, TheThreadThatCallsRunMayBlockTheSignal) {
  for (const bool everything : {false, true}) {
    sigset_t mask, before, after;
    everything ? sigfillset(&mask) : sigemptyset(&mask);
    sigaddset(&mask, SIGURG);
    pthread_sigmask(SIG_SETMASK, &mask, &before);
    run_with(GetParam(), [] {
      Hogs hogs(kHogs);
      wait_for([&hogs] { return hogs.surplus_is_suspended(); });
    });
    pthread_sigmask(SIG_SETMASK, &before, &after);
    EXPECT_EQ(sigismember(&after, SIGURG), 1);
    EXPECT_EQ(sigismember(&after, SIGUSR1), everything ? 1 : 0);
  }
}

// -- Where the signal arrives.

#if !defined(TUZA_TSAN)  // which delays signals until the thread has waited
// 1: at a futex; 0: in the middle of code.
std::atomic<int> g_where{-1};
std::atomic<std::uint32_t> g_word{0};
void look_where(int, siginfo_t*, void* context) { g_where = interrupted_at_futex(context) ? 1 : 0; }

// The thread of the test is not a goroutine.
template <class Condition>
void wait_outside_for(Condition condition) {
  while (!condition()) std::this_thread::sleep_for(1ms);
}

// Returns where a signal interrupts a thread that executes `body`, once the thread is runnable (`runnable`)
// or waits.
template <class Body>
int where_signal_comes(bool runnable, Body body) {
  struct sigaction action{}, before{};
  action.sa_sigaction = &look_where;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGUSR1, &action, &before);
  g_where = -1;
  g_word = 0;
  std::atomic<std::int32_t> id{0};
  std::thread thread([&] {
    id = static_cast<std::int32_t>(::syscall(SYS_gettid));
    body();
  });
  wait_outside_for([&] { return id != 0 && rt::thread_is_runnable(id, !runnable) == runnable; });
  ::pthread_kill(thread.native_handle(), SIGUSR1);
  wait_outside_for([] { return g_where >= 0; });
  g_word = 1;  // it may only be about to wait again
  rt::futex_wake(g_word, 1);
  thread.join();
  sigaction(SIGUSR1, &before, nullptr);
  return g_where;
}

// The thread may be seen in another wait before: for a page, or for what an emulator waits for.
TEST(InterruptedTest, AWaiterForALockIsAtAFutex) {
  const auto wait_for_word = [] {
    while (g_word == 0) rt::futex_wait(g_word, 0);
  };
  int where = 0;
  for (int tries = 0; tries < 20 && where == 0; ++tries) where = where_signal_comes(false, wait_for_word);
  EXPECT_EQ(where, 1);
}

// The result of this call is small, too.
TEST(InterruptedTest, AWaiterForSomethingElseIsNot) {
  const auto wait_for_events = [] {
    const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event{};
    while (g_where < 0) ::epoll_wait(epoll, &event, 1, -1);
    ::close(epoll);
  };
  EXPECT_EQ(where_signal_comes(false, wait_for_events), 0);
}

TEST(InterruptedTest, AComputingThreadIsNot) {
  const auto compute_until_it_has_come = [] {
    while (g_where < 0) {
    }
  };
  EXPECT_EQ(where_signal_comes(true, compute_until_it_has_come), 0);
}
#endif

}  // namespace
}  // namespace tuza
