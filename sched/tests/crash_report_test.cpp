// SIGSEGV and SIGBUS. The runtime handles both signals to tell stack overflows from other faults; every other
// use of them has the same effect as without a runtime. (The reports themselves: goroutine_test.cpp.)
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <tuza/sched/go.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/children.h>
#include <tuza/sched/tests/testing.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ostream>
#include <string>
#include <thread>

namespace tuza {
namespace {

using namespace testing;

// -- The program's disposition of the signal before the runtime existed.

enum class Before { kDefault, kIgnored, kHandler, kHandlerWithInfo };

std::atomic<int> g_handled{0};
void handle_plainly(int) { ++g_handled; }
void handle_with_info(int, siginfo_t* info, void*) { g_handled += info->si_code <= 0 ? 1 : 100; }

void set_up(int signal, Before before) {
  struct sigaction action{};
  switch (before) {
    case Before::kDefault: action.sa_handler = SIG_DFL; break;
    case Before::kIgnored: action.sa_handler = SIG_IGN; break;
    case Before::kHandler: action.sa_handler = &handle_plainly; break;
    case Before::kHandlerWithInfo:
      action.sa_sigaction = &handle_with_info;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK;
      break;
  }
  sigaction(signal, &action, nullptr);
}

// -- The sender and the target.

void raise_it(int signal) { ::raise(signal); }
void kill_the_process(int signal) { ::kill(::getpid(), signal); }
void queue_it(int signal) { ::sigqueue(::getpid(), signal, sigval{.sival_int = 5}); }

// To a thread that is in the kernel on behalf of a goroutine.
void kill_another_goroutine(int signal) {
  std::atomic<pthread_t> thread{};
  std::atomic<bool> stop = false;
  WaitGroup group;
  group.go([&] {
    thread = ::pthread_self();
    while (!stop) ::usleep(1000);
  });
  while (thread == pthread_t{}) sleep_for(std::chrono::milliseconds(1));
  ::pthread_kill(thread, signal);
  ::usleep(20'000);
  stop = true;
  group.wait();
}

void raise_on_a_thread(int signal) {
  std::thread([signal] { ::raise(signal); }).join();
}

using Send = void (*)(int signal);

struct Sent {
  const char* name;
  int signal;
  Send send;
  Before before = Before::kDefault;
};
std::ostream& operator<<(std::ostream& out, const Sent& sent) { return out << sent.name; }
constexpr auto kNameOfSent = [](const auto& sent) { return std::string(sent.param.name); };

const Sent kFatal[] = {
    {"raise", SIGSEGV, &raise_it},
    {"raise_bus", SIGBUS, &raise_it},
    {"kill", SIGSEGV, &kill_the_process},
    {"kill_bus", SIGBUS, &kill_the_process},
    {"sigqueue", SIGSEGV, &queue_it},
    {"pthread_kill", SIGSEGV, &kill_another_goroutine},
    {"on_a_thread", SIGSEGV, &raise_on_a_thread},
};

const Sent kSurvived[] = {
    {"raise_ignored", SIGSEGV, &raise_it, Before::kIgnored},
    {"raise_bus_ignored", SIGBUS, &raise_it, Before::kIgnored},
    {"kill_ignored", SIGSEGV, &kill_the_process, Before::kIgnored},
    {"sigqueue_ignored", SIGSEGV, &queue_it, Before::kIgnored},
    {"pthread_kill_ignored", SIGSEGV, &kill_another_goroutine, Before::kIgnored},
    {"raise_handled", SIGSEGV, &raise_it, Before::kHandler},
    {"raise_bus_handled", SIGBUS, &raise_it, Before::kHandler},
    {"kill_handled", SIGSEGV, &kill_the_process, Before::kHandler},
    {"pthread_kill_handled", SIGSEGV, &kill_another_goroutine, Before::kHandler},
    {"raise_handled_with_info", SIGSEGV, &raise_it, Before::kHandlerWithInfo},
    {"sigqueue_handled_with_info", SIGSEGV, &queue_it, Before::kHandlerWithInfo},
    {"on_a_thread_handled_with_info", SIGBUS, &raise_on_a_thread, Before::kHandlerWithInfo},
};

class FatalSignalTest : public ::testing::TestWithParam<Sent> {};
INSTANTIATE_TEST_SUITE_P(Each, FatalSignalTest, ::testing::ValuesIn(kFatal), kNameOfSent);
class SurvivedSignalTest : public ::testing::TestWithParam<Sent> {};
INSTANTIATE_TEST_SUITE_P(Each, SurvivedSignalTest, ::testing::ValuesIn(kSurvived), kNameOfSent);

// The runtime used to swallow the first of these signals.
TEST_P(FatalSignalTest, EndsTheProcessThatDoesNotHandleIt) {
  const Ended ended = in_fork([] {
    set_up(GetParam().signal, GetParam().before);
    run([] {
      GetParam().send(GetParam().signal);
      for (int i = 0; i < 1000; ++i) ::usleep(1000);  // another thread may get it, and need a moment
    });
  });
  EXPECT_TRUE(ended.by_signal(GetParam().signal)) << ended.status << "\n" << ended.said;
  EXPECT_FALSE(ended.said_this("fatal error")) << ended.said;
}

// Waits until the handler, if there is one, has run; it must run exactly once.
void send_and_wait(const Sent& sent) {
  const int before = g_handled;
  sent.send(sent.signal);
  if (sent.before == Before::kIgnored) return;
  while (g_handled == before) ::usleep(1000);
  if (g_handled != before + 1) ::_exit(9);
}

TEST_P(SurvivedSignalTest, IsLeftToTheProgram) {
  const Ended ended = in_fork([] {
    set_up(GetParam().signal, GetParam().before);
    for (int i = 0; i < 2; ++i) {
      run([] {
        send_and_wait(GetParam());
        send_and_wait(GetParam());
      });
    }
  });
  EXPECT_TRUE(ended.with_code(7)) << ended.status << "\n" << ended.said;
}

[[gnu::noinline]] int overflow(int depth) {
  volatile char frame[200];
  frame[depth % 200] = static_cast<char>(depth);
  return depth == 0 ? 0 : overflow(depth + 1) + frame[depth % 200];
}

// The runtime used to report no overflow after such a signal.
TEST_P(SurvivedSignalTest, AnOverflowThatComesAfterItIsReported) {
  const Ended ended = in_fork([] {
    set_up(GetParam().signal, GetParam().before);
    run([] {
      send_and_wait(GetParam());
      go({.name = "deep"}, [] { overflow(1); });
      sleep_for(std::chrono::seconds(60));
    });
  });
  EXPECT_TRUE(ended.by_signal(SIGABRT)) << ended.status;
  EXPECT_TRUE(ended.said_this("deep: stack overflow")) << ended.said;
}

// -- Faults that are not overflows.

class FaultTest : public ::testing::TestWithParam<Before> {};
INSTANTIATE_TEST_SUITE_P(Before, FaultTest, ::testing::Values(Before::kDefault, Before::kIgnored),
                         [](const auto& before) {
                           return std::string(before.param == Before::kDefault ? "default" : "ignored");
                         });

// The kernel ends the process, whatever disposition the program has set for the signal.
TEST_P(FaultTest, EndsTheProcess) {
  const std::uintptr_t addresses[] = {
      8, ~std::uintptr_t{0} << 63 >> 1};  // siginfo_t has no address for the second
  for (const std::uintptr_t address : addresses) {
    const Ended ended = in_fork([address] {
      set_up(SIGSEGV, GetParam());
      run([address] { *reinterpret_cast<volatile char*>(address) = 1; });
    });
    EXPECT_TRUE(ended.by_signal(SIGSEGV)) << ended.status << "\n" << ended.said;
  }
}

// Like a garbage collector: makes the page that was written to accessible.
char* g_page = nullptr;
void make_accessible(int, siginfo_t* info, void*) {
  if (info->si_addr != g_page) ::_exit(9);
  ::mprotect(g_page, 4096, PROT_READ | PROT_WRITE);
  ++g_handled;
}

TEST(Fault, IsHandledByTheHandlerThatWasThereAndAnOverflowThatComesAfterItIsReported) {
  const Ended ended = in_fork([] {
    g_page = static_cast<char*>(::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    struct sigaction action{};
    action.sa_sigaction = &make_accessible;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, nullptr);
    run([] {
      for (int i = 1; i <= 3; ++i) {
        *static_cast<volatile char*>(g_page) = 1;
        if (g_handled != i) ::_exit(8);
        ::mprotect(g_page, 4096, PROT_NONE);
      }
      go({.name = "deep"}, [] { overflow(1); });
      sleep_for(std::chrono::seconds(60));
    });
  });
  EXPECT_TRUE(ended.by_signal(SIGABRT)) << ended.status;
  EXPECT_TRUE(ended.said_this("deep: stack overflow")) << ended.said;
}

void fault() {
  volatile std::uintptr_t address = 8;
  *reinterpret_cast<volatile char*>(address) = 1;
}

// Like crash reporters: they write their report, and let the default action end the process.
void report_and_return(int) { (void)!::write(STDERR_FILENO, "reported\n", 9); }
void report_and_raise(int number) {
  report_and_return(number);
  ::raise(number);
}

TEST(Fault, AReporterThatIsCalledOnceAtMostIsCalledOnce) {
  for (void (*reporter)(int) : {&report_and_return, &report_and_raise}) {
    const Ended ended = in_fork([reporter] {
      struct sigaction action{};
      action.sa_handler = reporter;
      action.sa_flags = static_cast<int>(SA_RESETHAND);
      sigaction(SIGSEGV, &action, nullptr);
      run(&fault);
    });
    EXPECT_TRUE(ended.by_signal(SIGSEGV)) << ended.status;
    EXPECT_TRUE(ended.said_this("reported\n"));
    EXPECT_EQ(ended.said.find("reported"), ended.said.rfind("reported")) << "more than once";
  }
}

TEST(Fault, TheHandlerRunsWithTheSignalsBlockedThatItWantsBlocked) {
  const Ended ended = in_fork([] {
    struct sigaction action{};
    action.sa_handler = [](int) {
      sigset_t blocked;
      pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
      ::_exit(sigismember(&blocked, SIGUSR1) == 1 && sigismember(&blocked, SIGSEGV) == 1 ? 7 : 8);
    };
    sigaddset(&action.sa_mask, SIGUSR1);
    sigaction(SIGSEGV, &action, nullptr);
    run(&fault);
  });
  EXPECT_TRUE(ended.with_code(7)) << ended.status;
}

}  // namespace
}  // namespace tuza
