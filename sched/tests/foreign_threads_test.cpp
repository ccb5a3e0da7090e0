// Deadlocks beside threads that the runtime does not know: none is reported while such a thread exists, and none is missed
// once it has ended.
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <tuza/sched/go.h>
#include <tuza/sched/goroutine.h>
#include <tuza/sched/rt/base/clock.h>
#include <tuza/sched/rt/base/foreign_threads.h>
#include <tuza/sched/rt/sched.h>
#include <tuza/sched/sync/chan.h>
#include <tuza/sched/sync/wait_group.h>
#include <tuza/sched/tests/children.h>
#include <tuza/sched/tests/testing.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

namespace tuza {
namespace {

using namespace std::chrono_literals;
using rt::DeadlockWatch;
using testing::awake_ms_are;
using testing::in_fork;

class ForeignThreadsDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

const auto kDeadlock = ::testing::ExitedWithCode(2);
const auto kWoken = ::testing::ExitedWithCode(7);
constexpr const char* kReport = "all goroutines are asleep - deadlock!";

// Waits, on a thread, until the last M has looked for a deadlock, and sysmon twice.
void wait_until_looked_again() {
  const DeadlockWatch& watch = rt::active()->deadlock_watch;
  for (;; std::this_thread::sleep_for(1ms)) {
    const std::int64_t due = watch.due_ns();
    if (due != rt::TimerHeap::kNever && due - rt::now_ns() > 2 * DeadlockWatch::kFirstNs) return;
  }
}
void wait_until_looked() {
  while (!awake_ms_are(0)) std::this_thread::sleep_for(1ms);
}

void wait_for_ever() {
  WaitGroup never;
  never.add(1);
  never.wait();
}

// -- A thread that wakes somebody.

int wait_for_a_librarys_thread() {
  Chan<int> results;
  std::thread library([&results] {
    wait_until_looked_again();
    results.send(7);
  });
  const auto result = results.recv();
  library.join();
  return result.value_or(1);
}

TEST_F(ForeignThreadsDeathTest, AThreadThatHasPromisedNothingIsWaitedFor) {
  EXPECT_EXIT(std::_Exit(run(&wait_for_a_librarys_thread)), kWoken, "");
}

int wait_for_an_earlier_thread() {
  Chan<int> results(1);
  std::atomic<bool> running = false;
  std::thread library([&] {
    while (!running) std::this_thread::sleep_for(1ms);
    wait_until_looked();
    results.send(7);
  });
  const int status = run([&] {
    running = true;
    return results.recv().value_or(1);
  });
  library.join();
  return status;
}

TEST_F(ForeignThreadsDeathTest, ThreadsThatExistedBeforeTheRunCount) {
  EXPECT_EXIT(std::_Exit(wait_for_an_earlier_thread()), kWoken, "");
}

// Each thread makes the next one and ends, while Ms and sysmon count them.
void pass_on(Chan<int>& results, int threads) {
  std::thread([&results, threads] {
    threads > 0 ? pass_on(results, threads - 1) : (void)results.try_send(7);
  }).detach();
}
int wait_for_the_last_of_many() {
  Chan<int> results(1);
  pass_on(results, testing::scaled(5000));
  return results.recv().value_or(1);
}

TEST_F(ForeignThreadsDeathTest, AThreadThatTheLastOneMadeIsWaitedFor) {
  EXPECT_EXIT(std::_Exit(run(&wait_for_the_last_of_many)), kWoken, "");
}

// A goroutine that ends locked to its thread ends the thread, and its thread-specific data is destroyed then.
Chan<int>* g_last_words = nullptr;
void send_last_words(void*) {
  wait_until_looked();
  g_last_words->send(7);
}
int wait_for_a_destructor() {
  Chan<int> results(1);
  g_last_words = &results;
  pthread_key_t key{};
  if (pthread_key_create(&key, &send_last_words) != 0) return 1;
  go([key, &results] {
    lock_os_thread();
    pthread_setspecific(key, &results);
  });
  return results.recv().value_or(1);
}

TEST_F(ForeignThreadsDeathTest, AThreadOfTheRuntimeThatEndsIsWaitedFor) {
  EXPECT_EXIT(std::_Exit(run(RunOptions{.max_procs = 1}, &wait_for_a_destructor)), kWoken, "");
}

// -- A thread that wakes nobody.

TEST_F(ForeignThreadsDeathTest, ADeadlockIsReportedWhenTheThreadHasEnded) {
  EXPECT_EXIT(run([] {
                std::thread(&wait_until_looked_again).detach();
                wait_for_ever();
              }),
              kDeadlock, kReport);
}

TEST_F(ForeignThreadsDeathTest, ThreadsOfEarlierRunsAreNotForeign) {
  EXPECT_EXIT(
      {
        for (int i = 0; i < 3; ++i) {
          run([] {
            WaitGroup group;
            group.go([] { lock_os_thread(); });
            group.wait();
          });
        }
        run(&wait_for_ever);
      },
      kDeadlock, kReport);
}

// The kernel counts the first thread as long as the process exists.
TEST_F(ForeignThreadsDeathTest, TheFirstThreadIsNotForeignWhenItHasEnded) {
  EXPECT_EXIT(
      {
        std::thread([] { run(&wait_for_ever); }).detach();
        ::syscall(SYS_exit, 0);
      },
      kDeadlock, kReport);
}

// -- Counting.

[[noreturn]] void wait_without_descriptors() {
  const struct rlimit none{0, 0};
  if (::setrlimit(RLIMIT_NOFILE, &none) != 0) std::_Exit(1);
  ::signal(SIGALRM, [](int) { ::_exit(7); });
  run([] {
    const struct itimerval second{{}, {1, 0}};
    ::setitimer(ITIMER_REAL, &second, nullptr);
    wait_for_ever();
  });
  std::_Exit(1);
}

TEST_F(ForeignThreadsDeathTest, WhereThreadsCannotBeCountedNoDeadlockIsReported) {
  EXPECT_EXIT(wait_without_descriptors(), kWoken, "");
}

// A thread that has ended is in the kernel's count for a moment, as is a sanitizer's that has just begun.
void wait_until_alone() {
  while (rt::foreign_threads_exist()) std::this_thread::sleep_for(1ms);
}

TEST(ForeignThreads, TheChildOfAForkHasNoneOfItsParents) {
  const rt::KnownThread in_the_parent;
  const auto child = in_fork([] {
    const rt::KnownThread caller;
    wait_until_alone();
    if constexpr (!rt::kTsan) {  // which ends a child of several threads that makes one
      std::atomic<bool> stop = false;
      std::thread foreign([&stop] {
        while (!stop) std::this_thread::sleep_for(1ms);
      });
      if (!rt::foreign_threads_exist()) ::_exit(1);
      stop = true;
      foreign.join();
      wait_until_alone();
    }
  });
  EXPECT_TRUE(child.with_code(7)) << child.status << child.said;
}

// -- When sysmon looks again.

TEST(DeadlockWatch, LooksAtOneStandstillLessAndLessOften) {
  DeadlockWatch watch;
  std::int64_t now = 1;
  for (std::int64_t interval = DeadlockWatch::kFirstNs; now < 100 * DeadlockWatch::kLongestNs;) {
    watch.watch(5, now);
    ASSERT_EQ(watch.due_ns(), now + interval);
    now += interval;
    interval = std::min(interval * 2, DeadlockWatch::kLongestNs);
  }
  watch.watch(6, now);
  EXPECT_EQ(watch.due_ns(), now + DeadlockWatch::kFirstNs) << "another standstill";
}

TEST(DeadlockWatch, LeavesOnlyWhatSysmonWillSeeSoonToSysmon) {
  DeadlockWatch watch;
  EXPECT_FALSE(watch.covers(5, 1)) << "nothing is watched";
  watch.watch(5, 1);
  EXPECT_TRUE(watch.covers(6, 1)) << "soon";
  watch.watch(5, 1);
  EXPECT_TRUE(watch.covers(5, 1)) << "nothing has run";
  EXPECT_FALSE(watch.covers(6, 1)) << "a goroutine has run, and sysmon will look late";
  watch.looks();
  EXPECT_FALSE(watch.covers(5, 1));
}

}  // namespace
}  // namespace tuza
